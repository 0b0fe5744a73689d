"""The words of the grammar: what a topic's TOML file says, as typed records.

Each entry of a file is one line: English wordings of one meaning parted by ` / `, then ` | ` and
the German. A noun's German starts with its gender: m, f, n, p (plural) or w (a masculine noun of
the weak declension, such as `w Planet/Planeten`).
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

Forms = tuple[str, ...]
TOPICS = Path(__file__).with_name("topics")

_ARTICLES = {
    "m": {"nom": "der", "acc": "den", "dat": "dem"},
    "f": {"nom": "die", "acc": "die", "dat": "der"},
    "n": {"nom": "das", "acc": "das", "dat": "dem"},
    "p": {"nom": "die", "acc": "die", "dat": "den"},
}
_ARTICLES["w"] = _ARTICLES["m"]


@dataclass(frozen=True, eq=False)
class Noun:
    """A thing or a role: English synonyms without article, and the German noun."""

    forms: Forms
    gender: str
    german: str
    oblique: str

    def bare(self, case: str) -> str:
        """Return the German noun without article in `nom`, `acc` or `dat`."""
        weak = self.gender == "w" and case != "nom"
        plural = self.gender == "p" and case == "dat"
        return self.oblique if weak or plural else self.german

    def __format__(self, case: str) -> str:
        """Return the German noun with its definite article in the case."""
        return f"{_ARTICLES[self.gender][case]} {self.bare(case)}"


@dataclass(frozen=True, eq=False)
class Phrase:
    """English wordings of one meaning and its German."""

    forms: Forms
    german: str


@dataclass(frozen=True, eq=False)
class Word(Phrase):
    """A verb (German: its participle), quality or manner, and the group of nouns it goes with."""

    group: str


@dataclass(frozen=True, eq=False)
class FactFrame(Phrase):
    """A sentence with slots {a} and {b}; German slots name their case, as in {a:acc}."""

    groups: tuple[str, str]


@dataclass(frozen=True, eq=False)
class Topic:
    """All words of one topic."""

    name: str
    headings: Forms
    agents: tuple[Noun, ...]
    groups: dict[str, tuple[Noun, ...]]
    verbs: tuple[Word, ...]
    states: tuple[Word, ...]
    places: tuple[Phrase, ...]
    manners: tuple[Word, ...]
    reasons: tuple[Phrase, ...]
    purposes: tuple[Phrase, ...]
    facts: tuple[FactFrame, ...]


@dataclass(frozen=True, eq=False)
class Common:
    """Words that all topics share."""

    cities: tuple[Phrase, ...]
    surnames: Forms
    times: tuple[Phrase, ...]
    amounts: tuple[Phrase, ...]
    openers: tuple[Phrase, ...]
    numbers: tuple[tuple[str, str, str], ...]


def _fields(line: str, count: int) -> list[str]:
    fields = [field.strip() for field in line.split("|")]
    if len(fields) != count:
        raise ValueError(f"{count} fields expected, {len(fields)} found: {line!r}")
    return fields


def _forms(text: str) -> Forms:
    return tuple(form.strip() for form in text.split(" / "))


def _noun(line: str) -> Noun:
    english, german = _fields(line, 2)
    gender, _, word = german.partition(" ")
    if gender not in _ARTICLES:
        raise ValueError(f"a German gender m, f, n, p or w expected: {line!r}")
    nominative, _, oblique = word.partition("/")
    return Noun(_forms(english), gender, nominative, oblique or nominative)


def _phrases(lines: list[str]) -> tuple[Phrase, ...]:
    pairs = (_fields(line, 2) for line in lines)
    return tuple(Phrase(_forms(english), german) for english, german in pairs)


def _words(lines: list[str]) -> tuple[Word, ...]:
    triples = (_fields(line, 3) for line in lines)
    return tuple(Word(_forms(english), german, group) for english, german, group in triples)


def _fact(line: str) -> FactFrame:
    english, german, groups = _fields(line, 3)
    first, second = groups.split()
    return FactFrame(_forms(english), german, (first, second))


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((TOPICS / f"{name}.toml").read_text("utf-8"))


@cache
def topics() -> tuple[Topic, ...]:
    """Return all topics, in order of their names."""
    result = []
    for name in sorted(path.stem for path in TOPICS.glob("*.toml") if path.stem != "common"):
        data = _read(name)
        result.append(
            Topic(
                name=name,
                headings=tuple(data["headings"]),
                agents=tuple(_noun(line) for line in data["agents"]),
                groups={
                    group: tuple(_noun(line) for line in lines)
                    for group, lines in data["groups"].items()
                },
                verbs=_words(data["verbs"]),
                states=_words(data["states"]),
                places=_phrases(data["places"]),
                manners=_words(data["manners"]),
                reasons=_phrases(data["reasons"]),
                purposes=_phrases(data["purposes"]),
                facts=tuple(_fact(line) for line in data["facts"]),
            )
        )
    return tuple(result)


@cache
def common() -> Common:
    """Return the words that all topics share."""
    data = _read("common")
    return Common(
        cities=_phrases(data["cities"]),
        surnames=tuple(data["surnames"]),
        times=_phrases(data["times"]),
        amounts=_phrases(data["amounts"]),
        openers=_phrases(data["openers"]),
        numbers=tuple((word, digits, german) for word, digits, german in data["numbers"]),
    )
