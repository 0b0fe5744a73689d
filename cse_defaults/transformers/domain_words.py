"""Words of the training texts that a tokenizer cuts into pieces, made tokens of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from tokenizers import AddedToken, Regex, Tokenizer
from tokenizers.pre_tokenizers import Split
from transformers import PreTrainedModel

from cse_core.errors import CseError
from cse_defaults.transformers.tokenizer import AT_ONCE

OCCURRENCES = 5
"""Times that a word must occur at least."""
SAMPLE = 100_000
"""Texts of a column that are read at most, spread evenly over the data."""
_SPLIT = Split(Regex(r"\W+"), "removed")
"""Keeps what ``single_word`` of an added token compares: runs of word characters."""


@dataclass(frozen=True)
class DomainWords:
    """Words that become tokens, in normalised form, those that save the most pieces first.

    Attributes:
        pieces: What each is cut into behind a space.
        counts: How often each occurs in the texts that were read.
        share: The share of all pieces of these texts that they save.
        asked: How many were asked for.
    """

    pieces: Mapping[str, Sequence[str]]
    counts: Mapping[str, int]
    share: float
    asked: int

    def line(self) -> str:
        """Return it as a line for people."""
        count, rare = len(self.pieces), f"word of several pieces occurs {OCCURRENCES} times"
        if not count:
            return f"adds no tokens: no {rare}"
        fewer = f", not {self.asked:,} (no other {rare})," if count < self.asked else ","
        cut = [f"{w} ({' '.join(p)}, {self.counts[w]:,} times)" for w, p in self.pieces.items()]
        first = f"{', '.join(cut[:5])}{', …' * (count > 5)}"
        saved = f"which save {100 * self.share:.1f} % of all pieces"
        return f"adds {count:,} token{'s' * (count > 1)}{fewer} {saved}: {first}"


def choose_words(columns: Sequence[Sequence[str]], tokenizer: Tokenizer, most: int) -> DomainWords:
    """Return the ``most`` words that save the most pieces: pieces beyond one, times occurrences.

    A word is a run of word characters of the normalised text, with a letter and without
    underscores, which the tokenizer's pre-tokenizer does not split. A tokenizer that does not split
    texts into words is refused.
    """
    plain, total, counts = _uncut(tokenizer), 0, Counter[str]()
    if not _in_context(["a"], plain)[0]:
        what = "its tokenizer does not split texts into words, so it finds no added word as a whole"
        raise CseError(what, where="model.add_tokens", value=most, hint="leave it out")
    for column in columns:
        places = range(0, len(column), len(column) // SAMPLE + 1)
        for start in range(0, len(places), AT_ONCE):
            texts = [column[place] for place in places[start : start + AT_ONCE]]
            total += sum(map(len, plain.encode_batch_fast(texts, add_special_tokens=False)))
            for text in texts:
                normal = plain.normalizer.normalize_str(text) if plain.normalizer else text
                counts.update(word for word, _ in _SPLIT.pre_tokenize_str(normal))
    words = [w for w, n in counts.items() if n >= OCCURRENCES and plain.token_to_id(w) is None]
    words = [word for word in words if "_" not in word and any(map(str.isalpha, word))]
    cut = dict(zip(words, _in_context(words, plain), strict=True))
    saved = {word: (len(ids) - 1) * counts[word] for word, ids in cut.items() if len(ids) > 1}
    best = sorted(saved, key=lambda word: (-saved[word], word))[:most]
    trial = _uncut(tokenizer)
    trial.add_tokens(_added(best))
    found = dict(zip(best, _in_context(best, trial), strict=True))
    best = [word for word in best if found[word] == [trial.token_to_id(word)]]
    pieces = {word: [str(plain.id_to_token(token)) for token in cut[word]] for word in best}
    return DomainWords(pieces, counts, sum(saved[word] for word in best) / max(1, total), most)


def _uncut(tokenizer: Tokenizer) -> Tokenizer:
    """Return a copy that neither cuts texts nor pads them."""
    made = deepcopy(tokenizer)
    made.no_truncation()
    made.no_padding()
    return made


def _added(words: Sequence[str]) -> list[AddedToken]:
    """Return words as tokens that are matched as a whole and take the space before them along."""
    return [AddedToken(word, single_word=True, lstrip=True, normalized=True) for word in words]


def _in_context(words: Sequence[str], tokenizer: Tokenizer) -> list[list[int]]:
    """Return the ids of each word in "a WORD a", none where the tokenizer sees other than three."""
    found = []
    for row in tokenizer.encode_batch([f"a {w} a" for w in words], add_special_tokens=False):
        of_word: dict[int | None, list[int]] = {}
        for word, token in zip(row.word_ids, row.ids, strict=True):
            of_word.setdefault(word, []).append(token)
        found.append([*of_word.values()][1] if len(of_word) == 3 else [])
    return found


@torch.no_grad()
def add_words(words: Sequence[str], tokenizer: Any, model: PreTrainedModel) -> None:
    """Make words tokens of a Hugging Face tokenizer, and rows of a model's embeddings.

    Each row, of the output too where the model predicts tokens, starts as the mean of those of the
    word's pieces.
    """
    if not words:
        return
    pieces = _in_context(words, _uncut(tokenizer.backend_tokenizer))
    tokenizer.add_tokens(_added(words))
    ids = [tokenizer.backend_tokenizer.token_to_id(word) for word in words]
    if max(ids) >= model.get_input_embeddings().weight.shape[0]:
        with torch.random.fork_rng(devices=[]):  # it draws rows, which are then written over
            model.resize_token_embeddings(max(ids) + 1, mean_resizing=False)
    tables = [model.get_input_embeddings(), model.get_output_embeddings()]
    tensors = [getattr(table, name, None) for table in tables for name in ("weight", "bias")]
    for tensor in {id(each): each for each in tensors if each is not None}.values():
        tensor[ids] = torch.stack([tensor[own].mean(0) for own in pieces])
