"""A text as a question and what answers it: its title or a sentence, and the rest."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import PurePath
from typing import NamedTuple

from cse import lacks_word_spaces, units_of

LEAST_WORDS = 4
"""Words of what can ask; in scripts without spaces, a third of its characters."""
_LENGTH, _WORDS, _RECURRING = 200, 5000, 0.97
_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])\s*")


class Pair(NamedTuple):
    """A question and its answer."""

    question: str
    answer: str


def without_title(title: str, text: str) -> str:
    """Return a text without the title at its start; the whole text where nothing else is there."""
    if title and text.casefold().startswith(title.casefold()):
        return text[len(title) :].lstrip(" \t\n.:-–—|") or text
    return text


def asking(titles: Sequence[str], documents: Sequence[str]) -> list[str]:
    """Return titles, empty ones for those that are their file's name alone: these ask for nothing.

    Args:
        titles: One for each text.
        documents: The file of each text, or what else stands for its document; may be empty.
    """
    pairs = zip(titles, documents, strict=True)
    return [
        "" if title != name and title == PurePath(name).stem else title for title, name in pairs
    ]


def sentences(text: str) -> list[str]:
    """Return the sentences of a text."""
    return [sentence for part in _END.split(text) if (sentence := part.strip())]


def by_title(title: str, text: str) -> Pair | None:
    """Return the title and the text without it; None where one of them is missing."""
    body = without_title(title, text)
    return Pair(title, body) if title and body != title else None


def by_sentence(title: str, text: str, draw: float, *, keep: bool = False) -> Pair | None:
    """Return a sentence and the text without it, behind the title; None of a single sentence.

    Args:
        title: The title; may be empty.
        text: The text.
        draw: From [0, 1), which sentence asks.
        keep: Whether it also stays in the text.
    """
    pieces = sentences(without_title(title, text))
    able = [place for place, piece in enumerate(pieces) if _words(piece) >= LEAST_WORDS]
    if len(pieces) < 2 or not able:
        return None
    place = able[int(draw * len(able))]
    rest = pieces if keep else pieces[:place] + pieces[place + 1 :]
    return Pair(pieces[place], " ".join([title, *rest] if title else rest))


def by_half(text: str) -> Pair | None:
    """Return the first half of a text's words and the second; None of a text with few words."""
    words, space = _split(text)
    half = len(words) // 2
    if _words(text) < 2 * LEAST_WORDS:
        return None
    return Pair(space.join(words[:half]), space.join(words[half:]))


def by_words(text: str, draws: tuple[float, float]) -> Pair:
    """Return two spans of half of a text's words, each beginning anywhere; of one word the text."""
    words, space = _split(text)
    size = -(-len(words) // 2)
    starts = (int(draw * (len(words) - size + 1)) for draw in draws)
    return Pair(*(space.join(words[start : start + size]) or text for start in starts))


def in_order(texts: Sequence[str]) -> bool:
    """Check whether neighbouring words recur, as in language; True for fewer than 5,000 words.

    Texts of language hold at most 0.95 times as many distinct pairs of neighbours as the same words
    shuffled inside each text, shuffled texts 0.99 times: measured on abstracts, news, titles,
    questions and captions. From 0.97 up, the words are in random order.
    """
    units = units_of(texts)[0]
    rows = [units(text)[:_LENGTH] for text in texts]
    if sum(map(len, rows)) < _WORDS:
        return True
    pairs = len({pair for words in rows for pair in pairwise(words)})
    draws = random.Random(0)
    for words in rows:
        draws.shuffle(words)
    return pairs < _RECURRING * len({pair for words in rows for pair in pairwise(words)})


def _split(text: str) -> tuple[list[str], str]:
    """Return a text's words, or its characters in scripts without spaces, and what joins them."""
    return ([*text], "") if lacks_word_spaces([text]) else (text.split(), " ")


def _words(text: str) -> int:
    return max(len(text.split()), len(text) // 3 if lacks_word_spaces([text]) else 0)
