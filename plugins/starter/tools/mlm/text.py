"""Texts of the pre-training tool: reading, vocabulary, and a memory-mapped token store.

A text is a list of sentences that belong together. Sentences that stand in an earlier text are
dropped, so that no held-out sentence is met again in training.
"""

import gzip
import hashlib
import json
import os
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate, groupby, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers import BertWordPieceTokenizer, Tokenizer

from cse_core.errors import CseError

SPECIAL_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
HELD_OUT_EVERY = 100
COVERED = 0.9999
"""The share of all characters that the alphabet covers; a word with a rarer one is [UNK]."""


class TokenStore(NamedTuple):
    """Tokens of all texts, end to end, without special tokens.

    Attributes:
        tokens: Token ids `[T]`, memory-mapped.
        sentences: Where each sentence begins, and the end of the last, `[S + 1]`.
        texts: Index of each text's first sentence, and the end of the last, `[D + 1]`.
        held_out: Which texts are kept from training, `[D]` bool.
    """

    tokens: NDArray[Any]
    sentences: NDArray[np.int64]
    texts: NDArray[np.int64]
    held_out: NDArray[np.bool_]


def _sentences_of(article: Any, where: str) -> list[str]:
    if isinstance(article, dict) and isinstance(article.get("sections"), list):
        groups = [section[1] for section in article["sections"]]
    elif isinstance(article, dict) and isinstance(article.get("paras"), list):
        groups = article["paras"]
    else:
        raise CseError(
            "no list `sections` ([[heading, [sentence, ...]], ...]) or `paras` "
            "([[sentence, ...], ...])",
            where=where,
            hint="write one such JSON object a line",
        )
    return [sentence for group in groups for sentence in group]


def read_texts(path: Path) -> Iterator[list[str]]:
    """Yield the texts of a file, each as its non-blank sentences.

    Args:
        path: `.txt` (one sentence a line; empty lines part the texts, and without any each line
            is a text of its own) or `.jsonl` (one article a line with `sections` or `paras`),
            either also `.gz`.

    Raises:
        CseError: The file is missing, of another kind, not UTF-8 or not as described.
    """
    name = path.name.removesuffix(".gz")
    if not name.endswith((".txt", ".jsonl")):
        raise CseError("neither .txt nor .jsonl (.gz allowed)", where=str(path), hint="convert it")
    opener = gzip.open if path.name.endswith(".gz") else open
    try:
        if name.endswith(".txt"):
            yield from _parted_texts(path, opener)
            return
        with opener(path, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                where = f"{path}, line {number}"
                try:
                    sentences = _sentences_of(json.loads(line), where)
                    sentences = [sentence.strip() for sentence in sentences if sentence.strip()]
                except (json.JSONDecodeError, AttributeError, IndexError, TypeError) as error:
                    raise CseError(f"not a JSON article ({error})", where=where) from None
                if sentences:
                    yield sentences
    except UnicodeDecodeError as error:
        raise CseError("not UTF-8", where=str(path), hint="convert it to UTF-8") from error
    except (OSError, EOFError) as error:
        raise CseError(
            f"cannot be read ({error})", where=str(path), hint="name a readable text file"
        ) from error


def _parted_texts(path: Path, opener: Callable[..., Any]) -> Iterator[list[str]]:
    with opener(path, "rt", encoding="utf-8") as lines:
        plain = (line.strip() for line in lines)
        parted = any(not one and following for one, following in pairwise(plain))
    with opener(path, "rt", encoding="utf-8") as lines:
        if not parted:
            yield from ([line.strip()] for line in lines if line.strip())
            return
        for empty, group in groupby((line.strip() for line in lines), key=lambda line: not line):
            if not empty:
                yield list(group)


def train_vocabulary(files: Iterable[Path], size: int) -> Tokenizer:
    """Train a lower-cased WordPiece vocabulary of at most `size` entries on the files.

    The library's trainer numbers pieces in the order of a hash map and breaks ties by number; it
    is given its alphabet (the characters that make up all but one in 10,000 of the texts') and the
    continuing characters (`##a`) in order, so that the same texts make the same vocabulary.
    """
    draft = BertWordPieceTokenizer(lowercase=True)
    words: Counter[str] = Counter()
    for file in files:
        for text in read_texts(file):
            for sentence in text:
                plain = draft.normalizer.normalize_str(sentence)
                words.update(word for word, _ in draft.pre_tokenizer.pre_tokenize_str(plain))
    characters: Counter[str] = Counter()
    for word, count in words.items():
        for character in word:
            characters[character] += count
    ranked = sorted(characters, key=lambda c: (-characters[c], c))
    seen = accumulate(characters[c] for c in ranked)
    common = bisect_left(list(seen), COVERED * characters.total()) + 1
    alphabet = sorted(ranked[: min(common, max(1, size // 4))])
    inner = {character for word in words for character in word[1:]} & set(alphabet)
    draft.train_from_iterator(
        (word for word, count in sorted(words.items()) for word in [word] * count),
        vocab_size=size,
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        special_tokens=[*SPECIAL_TOKENS, *(f"##{c}" for c in sorted(inner))],
        show_progress=False,
    )
    trained = BertWordPieceTokenizer(vocab=draft.get_vocab(), lowercase=True)
    return Tokenizer.from_str(trained.to_str())


def require_files(files: list[Path]) -> None:
    """Raise CseError for the first of `files` that is not a file."""
    for file in files:
        if not file.is_file():
            raise CseError(
                "no such file", where=str(file), hint="name a .txt or .jsonl text (.gz allowed)"
            )


def fingerprint(files: list[Path], tokenizer: Tokenizer) -> str:
    """Return a digest of the vocabulary and of the files' names and contents."""
    digest = hashlib.sha256(tokenizer.to_str().encode())
    for path in files:
        with path.open("rb") as file:
            digest.update(f"{path.name}:{hashlib.file_digest(file, 'sha256').hexdigest()}".encode())
    return digest.hexdigest()


def _digest(sentence: str) -> bytes:
    return hashlib.blake2b(" ".join(sentence.lower().split()).encode(), digest_size=8).digest()


def _batches(files: list[Path], sentences: int = 20_000) -> Iterator[list[list[str]]]:
    batch: list[list[str]] = []
    held = 0
    for file in files:
        for text in read_texts(file):
            batch.append(text)
            held += len(text)
            if held >= sentences:
                yield batch
                batch, held = [], 0
    if batch:
        yield batch


def _write_store(folder: Path, files: list[Path], tokenizer: Tokenizer) -> None:
    dtype = np.uint16 if tokenizer.get_vocab_size() <= 65_536 else np.uint32
    sentences, texts, held_out = [0], [0], []
    seen: set[bytes] = set()
    with (folder / "tokens.bin").open("wb") as out:
        for batch in _batches(files):
            kept: list[str] = []
            sizes: list[int] = []
            for text in batch:
                fresh = []
                for sentence in text:
                    digest = _digest(sentence)
                    if digest not in seen:
                        seen.add(digest)
                        fresh.append(sentence)
                if fresh:
                    kept += fresh
                    sizes.append(len(fresh))
                    # by content, so that the choice does not hang on the order of the files
                    held_out.append(int.from_bytes(_digest(fresh[0])) % HELD_OUT_EVERY == 0)
            encoded = tokenizer.encode_batch_fast(kept, add_special_tokens=False)
            for item in encoded:
                sentences.append(sentences[-1] + len(item.ids))
            flat = [token for item in encoded for token in item.ids]
            out.write(np.asarray(flat, dtype=dtype).tobytes())
            for size in sizes:
                texts.append(texts[-1] + size)
    if sentences[-1] == 0:
        raise CseError(
            "no text in it", where=", ".join(map(str, files)), hint="name files with sentences"
        )
    if len(held_out) < 2:
        raise CseError(
            "one single text, of which nothing can be held out",
            where=", ".join(map(str, files)),
            hint="name files with several articles, or a .txt file",
        )
    if all(held_out) or not any(held_out):
        held_out = [False] * (len(held_out) - 1) + [True]
    np.save(folder / "sentences.npy", np.asarray(sentences, dtype=np.int64))
    np.save(folder / "texts.npy", np.asarray(texts, dtype=np.int64))
    np.save(folder / "held_out.npy", np.asarray(held_out, dtype=np.bool_))


def open_store(folder: Path, files: list[Path], tokenizer: Tokenizer) -> TokenStore:
    """Tokenise the files once into `folder` and map the result; reuse it where it is current."""
    require_files(files)
    folder.mkdir(parents=True, exist_ok=True)
    stamp = folder / "fingerprint"
    current = fingerprint(files, tokenizer)
    if not stamp.is_file() or stamp.read_text() != current:
        stamp.unlink(missing_ok=True)
        _write_store(folder, files, tokenizer)
        beside = folder / "fingerprint.new"
        beside.write_text(current)
        os.replace(beside, stamp)
    dtype = np.uint16 if tokenizer.get_vocab_size() <= 65_536 else np.uint32
    return TokenStore(
        np.memmap(folder / "tokens.bin", dtype=dtype, mode="r"),
        np.load(folder / "sentences.npy"),
        np.load(folder / "texts.npy"),
        np.load(folder / "held_out.npy"),
    )
