"""Words of the training texts that a tokenizer cuts into pieces, made tokens of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import torch
from tokenizers import AddedToken, Regex, Tokenizer
from tokenizers.pre_tokenizers import Split
from transformers import PreTrainedModel

from cse_core.errors import CseError

OCCURRENCES = 5
"""Times that a word must occur at least."""
SAMPLE = 100_000
"""Texts of a column that are read, spread evenly over the data."""
_AT_ONCE = 10_000
_SHOWN = 5
_SPLIT = Split(Regex(r"\W+"), "removed")
"""Keeps what the tokenizers library compares with ``single_word``: a run of word characters."""


@dataclass(frozen=True)
class DomainWord:
    """A word, as the tokenizer's normalizer leaves it.

    Attributes:
        pieces: The tokens that it was cut into behind a space.
        count: How often it occurs in the texts that were read.
    """

    word: str
    pieces: tuple[str, ...]
    count: int

    @property
    def saved(self) -> int:
        """Return how many pieces of the texts one token for it saves."""
        return (len(self.pieces) - 1) * self.count


@dataclass(frozen=True)
class DomainWords:
    """The words that become tokens, those that save the most pieces first.

    Attributes:
        total: Pieces of all texts that were read.
    """

    words: tuple[DomainWord, ...]
    total: int

    @property
    def share(self) -> float:
        """Return the share of all pieces that they save."""
        return sum(each.saved for each in self.words) / max(1, self.total)

    def line(self) -> str:
        """Return it as a line for people."""
        if not self.words:
            return f"adds no tokens: no word of several pieces occurs {OCCURRENCES} times"
        shown = [
            f"{each.word} ({' '.join(each.pieces)}, {each.count:,} times)"
            for each in self.words[:_SHOWN]
        ]
        more = ", …" if len(self.words) > _SHOWN else ""
        return (
            f"adds {len(self.words):,} token{'s' * (len(self.words) > 1)}, which save "
            f"{100 * self.share:.1f} % of all pieces: {', '.join(shown)}{more}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return it for machines."""
        first = [vars(each) for each in self.words[:_SHOWN]]
        return {"tokens": len(self.words), "saved": self.share, "first": first}


def choose_words(columns: Sequence[Sequence[str]], tokenizer: Tokenizer, most: int) -> DomainWords:
    """Return the ``most`` words that save the most pieces: pieces beyond one, times occurrences.

    A word is a run of word characters of the normalised text, with a letter and without
    underscores, which the tokenizer's pre-tokenizer does not split.

    Raises:
        CseError: If the tokenizer does not split texts into words.
    """
    counts: Counter[str] = Counter()
    total, tokenizer = 0, _uncut(tokenizer)
    if not _in_context(["a"], tokenizer)[0][1]:
        what = "its tokenizer does not split texts into words, so it finds no added word as a whole"
        raise CseError(what, where="model.add_tokens", value=most, hint="leave it out")
    for texts in _batches(columns):
        total += sum(map(len, tokenizer.encode_batch_fast(texts, add_special_tokens=False)))
        for text in texts:
            normal = tokenizer.normalizer.normalize_str(text) if tokenizer.normalizer else text
            counts.update(word for word, _ in _SPLIT.pre_tokenize_str(normal))
    words = [
        word
        for word, count in counts.items()
        if count >= OCCURRENCES and "_" not in word and any(map(str.isalpha, word))
    ]
    cut = {
        word: (first, pieces, last)
        for word, (first, pieces, last) in zip(words, _in_context(words, tokenizer), strict=True)
        if len(pieces) > 1 and tokenizer.token_to_id(word) is None
    }
    best = sorted(cut, key=lambda word: ((1 - len(cut[word][1])) * counts[word], word))[:most]
    trial = _uncut(tokenizer)
    trial.add_tokens(_added(best))
    whole = [
        word
        for word, found in zip(best, _in_context(best, trial), strict=True)
        if found == (cut[word][0], [trial.token_to_id(word)], cut[word][2])
    ]
    return DomainWords(
        tuple(
            DomainWord(word, tuple(map(tokenizer.id_to_token, cut[word][1])), counts[word])
            for word in whole
        ),
        total,
    )


def _batches(columns: Sequence[Sequence[str]]) -> Iterator[list[str]]:
    for texts in columns:
        count = min(SAMPLE, len(texts))
        places = [place * len(texts) // count for place in range(count)]
        for start in range(0, count, _AT_ONCE):
            yield [texts[place] for place in places[start : start + _AT_ONCE]]


def _uncut(tokenizer: Tokenizer) -> Tokenizer:
    """Return a copy that neither cuts texts nor pads them."""
    made = deepcopy(tokenizer)
    made.no_truncation()
    made.no_padding()
    return made


def _added(words: Sequence[str]) -> list[AddedToken]:
    """Return words as tokens that are matched as a whole and take the space before them along."""
    return [AddedToken(word, single_word=True, lstrip=True, normalized=True) for word in words]


def _in_context(words: Sequence[str], tokenizer: Tokenizer) -> list[tuple[list[int], ...]]:
    """Return the ids of "a WORD a" for each word, by the words that the tokenizer sees there.

    Three empty lists where it sees other than three words.
    """
    found = []
    for row in tokenizer.encode_batch([f"a {w} a" for w in words], add_special_tokens=False):
        groups = groupby(zip(row.word_ids, row.ids, strict=True), key=lambda pair: pair[0])
        ids = tuple([token for _, token in group] for _, group in groups)
        found.append(ids if len(ids) == 3 else ([], [], []))
    return found


def add_words(words: Sequence[str], tokenizer: Any, model: PreTrainedModel) -> None:
    """Make words tokens of a Hugging Face tokenizer, and rows of a model's embeddings.

    Each row, of the output too where the model predicts tokens, starts as the mean of those of the
    word's pieces.
    """
    if not words:
        return
    backend = tokenizer.backend_tokenizer
    pieces = [pieces for _, pieces, _ in _in_context(words, _uncut(backend))]
    tokenizer.add_tokens(_added(words))
    _embed(model, dict(zip(map(backend.token_to_id, words), pieces, strict=True)))


@torch.no_grad()
def _embed(model: PreTrainedModel, pieces: Mapping[int, list[int]]) -> None:
    size = max(pieces) + 1
    if size > model.get_input_embeddings().weight.shape[0]:
        with torch.random.fork_rng(devices=[]):  # it draws rows, which are then written over
            model.resize_token_embeddings(size, mean_resizing=False)
    tables = [model.get_input_embeddings(), model.get_output_embeddings()]
    tensors = [getattr(table, name, None) for table in tables for name in ("weight", "bias")]
    for tensor in {id(each): each for each in tensors if each is not None}.values():
        means = [tensor[own].mean(0) for own in pieces.values()]
        tensor[list(pieces)] = torch.stack(means)
