"""Words of a text deleted, replaced by synonyms, or inserted: the paper's other augmentations."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import torch

from cse import read_table
from cse_core.errors import CseError
from cse_core.parts import Augmenter, Setup
from cse_core.types import StepContext, TokenBatch, View
from cse_ifcl.options import LexiconOptions, WordOptions

_UNITS = {"word": re.compile(r"\w+(?:['’-]\w+)*"), "character": re.compile(r"\w")}
T = TypeVar("T")
Lexicon = Mapping[str, Sequence[str]]
"""Synonyms of each word, its key in lower case."""


class WordAugmenter(Augmenter):
    """Changes some units of each text: words, or characters where a language has no blanks.

    What stands between units, punctuation and blanks, stays. A text without a unit stays as it is.
    """

    def __init__(self, options: WordOptions, setup: Setup) -> None:
        super().__init__(options, setup)
        self.gap = " " if options.unit == "word" else ""

    def __call__(
        self, x: list[str], tokens: TokenBatch | None, view: View, ctx: StepContext
    ) -> list[str]:
        """Return the texts, each changed by draws of its own."""
        draws = ctx.generator("words", shared=False)
        return [self.changed(text, draws) for text in x]

    def changed(self, text: str, draws: torch.Generator) -> str:
        """Return a text with some units changed."""
        raise TypeError(f"{type(self).__name__} does not say what it changes")

    def units(self, text: str) -> list[tuple[int, int]]:
        """Locate the text's units: where each begins and ends."""
        return [match.span() for match in _UNITS[self.options.unit].finditer(text)]

    def count(self, units: int) -> int:
        """Compute the number of units to change: their share, one at least."""
        return max(1, round(self.options.rate * units))


class RandomDeletion(WordAugmenter):
    """Deletes each unit with probability ``rate``; one always stays (Wei and Zou, 2019)."""

    def changed(self, text: str, draws: torch.Generator) -> str:
        """Return the text without some units."""
        units = self.units(text)
        if len(units) < 2:
            return text
        drawn = torch.rand(len(units), generator=draws)
        gone = drawn < self.options.rate
        gone[int(drawn.argmax())] = False
        pieces, last = [], 0
        for (start, stop), out in zip(units, gone.tolist(), strict=True):
            if out:
                pieces.append(text[last:start])
                last = stop
        shorter = "".join([*pieces, text[last:]])
        return " ".join(shorter.split()) if pieces else text


class _WithLexicon(WordAugmenter):
    """One that takes synonyms from a file.

    Raises:
        CseError: If the file is not a lexicon.
    """

    options: LexiconOptions

    def __init__(self, options: LexiconOptions, setup: Setup) -> None:
        super().__init__(options, setup)
        where = f"aug.{setup.name}.lexicon"
        self.lexicon: Lexicon = {} if options.lexicon is None else _read(options.lexicon, where)

    def known(self, text: str) -> list[tuple[int, int]]:
        """Return the units that have synonyms."""
        return [(start, stop) for start, stop in self.units(text) if self.of(text[start:stop])]

    def of(self, word: str) -> Sequence[str]:
        """Return the synonyms of a word."""
        return self.lexicon.get(word.lower(), ())


class Synonym(_WithLexicon):
    """Replaces units that the lexicon knows by one of their synonyms (Wei and Zou, 2019)."""

    def changed(self, text: str, draws: torch.Generator) -> str:
        """Return the text with some units replaced; fewer where fewer are known."""
        known = self.known(text)
        order = torch.randperm(len(known), generator=draws).tolist()
        chosen = sorted(order[: self.count(len(self.units(text)))], reverse=True)
        for number in chosen:  # from behind, so that places before stay
            start, stop = known[number]
            text = text[:start] + _one_of(self.of(text[start:stop]), draws) + text[stop:]
        return text


class RandomInsertion(_WithLexicon):
    """Inserts units at random places: synonyms of the text's own (Wei and Zou, 2019).

    Without a lexicon, and in a text of which it knows no unit, the text's own units are inserted.
    """

    def changed(self, text: str, draws: torch.Generator) -> str:
        """Return the text with some units more."""
        units = self.units(text)
        if not units:
            return text
        known = self.known(text)
        count = self.count(len(units))
        inserted = []
        for _ in range(count):
            start, stop = _one_of(known or units, draws)
            word = text[start:stop]
            inserted.append(_one_of(self.of(word) or [word], draws))
        places = torch.randint(len(units) + 1, (count,), generator=draws).tolist()
        for place, word in sorted(zip(places, inserted, strict=True), reverse=True):
            if place == len(units):
                end = units[-1][1]
                text = f"{text[:end]}{self.gap}{word}{text[end:]}"
            else:
                start = units[place][0]
                text = f"{text[:start]}{word}{self.gap}{text[start:]}"
        return text


def _one_of(items: Sequence[T], draws: torch.Generator) -> T:
    return items[int(torch.randint(len(items), (1,), generator=draws))]


def _read(file: str, where: str) -> dict[str, list[str]]:
    """Return the synonyms of a table with columns ``word`` and ``synonym``, one a row."""
    columns, rows = read_table(Path(file).expanduser())
    missing = [column for column in ("word", "synonym") if column not in columns]
    if missing:
        raise CseError(
            f"has no column {' and '.join(missing)}",
            where=where,
            value=file,
            hint="a lexicon is a table with columns word and synonym, one synonym a row",
        )
    synonyms: dict[str, list[str]] = {}
    for _, row in rows:
        word, synonym = (str(row[name] or "").strip() for name in ("word", "synonym"))
        if word and synonym and synonym not in synonyms.setdefault(word.lower(), []):
            synonyms[word.lower()].append(synonym)
    if not any(synonyms.values()):
        raise CseError("holds no word with a synonym", where=where, value=file)
    return synonyms
