"""Texts for pre-training: reading, vocabulary, tokens, rows of one length, and word vectors.

A text is a list of sentences that belong together. Sentences that stand in an earlier text are
dropped, so that no held-out sentence is met again in training.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate, groupby, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from tokenizers import BertWordPieceTokenizer
from torch import Tensor

from cse_core.errors import CseError

SPECIAL_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
HELD_OUT_EVERY = 100
COVERED = 0.9999
"""The share of all characters that the alphabet covers; a word with a rarer one is [UNK]."""
SHORTEST_ROW = 4
WINDOW = 8
"""Words on either side that are a word's company."""
COMPANY = 0.25
"""The share of a vector's places that say in what company a word stands."""
OWN = 2.0
"""How much longer the random part is."""
SMOOTHING = 1e-3
"""The constant a of a word's weight."""
_BLOCK = 4_000_000


class Tokens(NamedTuple):
    """Tokens of all texts, end to end, without special tokens.

    Attributes:
        ids: Token ids ``[T]``.
        sentences: Where each sentence begins, and the end of the last, ``[S + 1]``.
        texts: Index of each text's first sentence, and the end of the last, ``[D + 1]``.
        held_out: Which texts are kept from training, ``[D]`` bool.
    """

    ids: NDArray[np.int64]
    sentences: NDArray[np.int64]
    texts: NDArray[np.int64]
    held_out: NDArray[np.bool_]


class Batch(NamedTuple):
    """Rows of one length: where each begins among the tokens, and how many tokens it takes."""

    starts: NDArray[np.int64]
    length: int


def read_texts(path: Path) -> Iterator[list[str]]:
    """Yield the texts of a file, each as its non-blank sentences.

    Args:
        path: ``.txt`` (one sentence a line; empty lines part the texts, and without any each line
            is a text of its own) or ``.jsonl`` (one article a line, with ``sections``
            ``[[heading, [sentence, ...]], ...]`` or ``paras`` ``[[sentence, ...], ...]``), either
            also ``.gz``.

    Raises:
        CseError: The file cannot be read, or is not as described.
    """
    opener: Callable[..., Any] = gzip.open if path.suffix == ".gz" else open
    try:
        if path.name.removesuffix(".gz").endswith(".jsonl"):
            with opener(path, "rt", encoding="utf-8") as lines:
                yield from (_sentences(json.loads(line)) for line in lines if line.strip())
            return
        with opener(path, "rt", encoding="utf-8") as lines:
            plain = (line.strip() for line in lines)
            parted = any(not one and following for one, following in pairwise(plain))
        with opener(path, "rt", encoding="utf-8") as lines:
            plain = (line.strip() for line in lines)
            if parted:
                yield from (list(group) for there, group in groupby(plain, bool) if there)
            else:
                yield from ([line] for line in plain if line)
    except (OSError, EOFError, ValueError, KeyError, TypeError, IndexError) as error:
        raise CseError(f"cannot be read ({error!r})", where=str(path)) from error


def _sentences(article: dict[str, Any]) -> list[str]:
    paragraphs = article.get("paras") or [section[1] for section in article["sections"]]
    return [sentence.strip() for each in paragraphs for sentence in each if sentence.strip()]


def train_vocabulary(files: Iterable[Path], size: int) -> BertWordPieceTokenizer:
    """Train a lower-cased WordPiece vocabulary of at most ``size`` entries on the files.

    The library's trainer numbers pieces in the order of a hash map and breaks ties by number; it
    is given its alphabet (the characters that make up all but one in 10,000 of the texts') and the
    continuing characters (``##a``) in order, so that the same texts make the same vocabulary.
    """
    draft = BertWordPieceTokenizer(lowercase=True)
    words: Counter[str] = Counter()
    for sentence in (each for file in files for text in read_texts(file) for each in text):
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
    return BertWordPieceTokenizer(vocab=draft.get_vocab(), lowercase=True)


def tokenize(files: Iterable[Path], tokenizer: BertWordPieceTokenizer) -> Tokens:
    """Return the tokens of files; a sentence that came before is dropped.

    Raises:
        CseError: There are fewer than two texts, of which one would be held out.
    """
    pieces, sentences, texts, held_out = [np.zeros(0, np.int64)], [0], [0], []
    seen: set[bytes] = set()
    for text in (text for file in files for text in read_texts(file)):
        fresh = []
        for sentence in text:
            digest = hashlib.blake2b(" ".join(sentence.lower().split()).encode(), digest_size=8)
            if digest.digest() not in seen:
                seen.add(digest.digest())
                fresh.append((sentence, digest))
        if not fresh:
            continue
        for item in tokenizer.encode_batch([each for each, _ in fresh], add_special_tokens=False):
            pieces.append(np.asarray(item.ids, np.int64))
            sentences.append(sentences[-1] + len(item.ids))
        texts.append(texts[-1] + len(fresh))
        # by content, so that the choice does not hang on the order of the files
        held_out.append(int.from_bytes(fresh[0][1].digest()) % HELD_OUT_EVERY == 0)
    if len(held_out) < 2:
        raise CseError("the files hold fewer than two texts", hint="name larger files")
    if all(held_out) or not any(held_out):
        held_out = [False] * (len(held_out) - 1) + [True]
    where = (np.asarray(sentences, np.int64), np.asarray(texts, np.int64), np.asarray(held_out))
    return Tokens(np.concatenate(pieces), *where)


def cut_rows(
    tokens: Tokens, held_out: bool, shares: dict[int, float], rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Cut every text into rows and return their starts and lengths.

    A row begins at the start of a sentence, as the texts do that the encoder is meant for, and
    never leaves its text.

    Args:
        tokens: The tokens.
        held_out: Whether to cut the held-out texts or the others.
        shares: Row length with its special tokens -> wanted share of all tokens.
        rng: Draws the length of each row.
    """
    caps = np.array(sorted(shares)) - 2
    chances = np.array([shares[cap + 2] / cap for cap in caps])
    chances /= chances.sum()
    starts: list[int] = []
    lengths: list[int] = []
    bounds = tokens.sentences
    for text in np.flatnonzero(tokens.held_out == held_out):
        sentence, end = int(tokens.texts[text]), int(tokens.texts[text + 1])
        stop = int(bounds[end])
        while sentence < end:
            begin = int(bounds[sentence])
            cap = int(caps[np.searchsorted(chances.cumsum(), rng.random(), side="right")])
            length = min(cap, stop - begin)
            if length >= SHORTEST_ROW:
                starts.append(begin)
                lengths.append(length)
            after = int(np.searchsorted(bounds[sentence + 1 : end], begin + length))
            sentence = sentence + 1 + after
    return np.asarray(starts, dtype=np.int64), np.asarray(lengths, dtype=np.int64)


def batch_rows(
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    positions: int,
    rng: np.random.Generator,
) -> list[Batch]:
    """Group rows into batches of one length and about ``positions`` places, in random order.

    No row is ever padded: those left over after the full batches of their length are cut to the
    shortest of their group.
    """
    order = rng.permutation(len(starts))
    order = order[np.argsort(-lengths[order], kind="stable")]
    batches: list[Batch] = []
    left: list[NDArray[np.int64]] = []
    edges = np.flatnonzero(np.diff(lengths[order], prepend=-1, append=-1))
    for low, high in zip(edges[:-1], edges[1:], strict=True):
        group = order[low:high]
        length = int(lengths[group[0]])
        rows = max(1, positions // (length + 2))
        full = len(group) // rows * rows
        batches += [Batch(starts[group[i : i + rows]], length) for i in range(0, full, rows)]
        left.append(group[full:])
    rest = np.concatenate(left) if left else order[:0]
    place = 0
    while place < len(rest):
        rows = max(1, positions // (int(lengths[rest[place]]) + 2))
        group = rest[place : place + rows]
        batches.append(Batch(starts[group], int(lengths[group[-1]])))
        place += rows
    return [batches[i] for i in rng.permutation(len(batches))]


def training_tokens(tokens: Tokens) -> NDArray[np.int64]:
    """Return the tokens of all texts that are not held out, end to end."""
    starts, ends = tokens.sentences[tokens.texts[:-1]], tokens.sentences[tokens.texts[1:]]
    return tokens.ids[np.repeat(~tokens.held_out, ends - starts)]


def cooccurrences(ids: NDArray[np.int64], size: int) -> NDArray[np.float32]:
    """Return how often words stand near each other ``[size, size]``, symmetric.

    A pair ``d`` places apart counts 1 - (d - 1) / WINDOW. Windows cross the ends of texts.
    """
    counts = np.zeros(size * size, dtype=np.float32)
    for start in range(0, max(1, len(ids) - 1), _BLOCK):
        block = ids[start : start + _BLOCK + WINDOW]
        for distance in range(1, WINDOW + 1):
            first, second = block[:_BLOCK][: len(block) - distance], block[distance:]
            pairs = first * size + second[: len(first)]
            weight = 1 - (distance - 1) / WINDOW
            counts += np.bincount(pairs, minlength=size * size).astype(np.float32) * weight
    square = counts.reshape(size, size)
    return square + square.T


def company_vectors(counts: Tensor, dimensions: int) -> Tensor:
    """Return centred unit vectors ``[V, dimensions]`` of the company that words keep.

    They are left singular vectors of the positive pointwise mutual information, contexts smoothed
    by the power 0.75 (Levy and Goldberg 2014); the first, which every word shares, is left out.
    """
    rows = counts.sum(1).clamp(min=1)
    contexts = counts.sum(0).clamp(min=1) ** 0.75
    information = torch.log((counts / rows[:, None]).clamp(min=1e-12))
    information -= torch.log(contexts / contexts.sum())
    left, _, _ = torch.svd_lowrank(information.clamp_(min=0), q=dimensions + 32, niter=3)
    left = left[:, 1 : dimensions + 1]
    return F.normalize(left - left.mean(0), dim=1)


def word_vectors(tokens: Tokens, size: int, hidden: int, seed: int) -> tuple[Tensor, Tensor]:
    """Return a unit vector for each word ``[size, hidden]``, and each word's weight ``[size]``.

    A quarter of a vector's places says in what company the word stands; the others are a random
    direction of its own, which keeps words of one topic apart. A sentence's vector is the sum of
    its words' vectors, each weighted by a / (a + p(word)) (Arora et al. 2017, "A simple but
    tough-to-beat baseline for sentence embeddings").
    """
    ids = training_tokens(tokens)
    company = round(COMPANY * hidden)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        own = F.normalize(torch.randn(size, hidden - company), dim=1)
        counts = torch.from_numpy(cooccurrences(ids, size))
        vectors = torch.cat([company_vectors(counts, company), OWN * own], dim=1)
    share = torch.from_numpy(np.bincount(ids, minlength=size) / max(1, len(ids)))
    return F.normalize(vectors, dim=1), (SMOOTHING / (SMOOTHING + share)).float()
