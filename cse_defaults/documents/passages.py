"""What is between two headings as passages of about the same length, of whole sentences."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import NamedTuple

from cse_core.words import MAX_WORD_LETTERS, UNSPACED, count_words

PASSAGE = 120
"""Words of a passage, at most, where a word is as :func:`cse_core.words.count_words` counts."""
MAX_TITLE_LETTERS = 200
"""Letters of a title or heading; what is longer is a paragraph."""
_SECTIONS = 3
"""Headings of the highest level from which on none of them is the title."""
_MAX_INDENT = 9
_WINDOW = 1500
"""Letters that are looked at for the ends of sentences; what is longer is longer than a passage."""
_UNITS = re.compile(rf"\s*(?:[{UNSPACED}]|[^\s{UNSPACED}]{{1,{MAX_WORD_LETTERS}}})(?:\s+\Z)?")


class Block(NamedTuple):
    """A paragraph, an item of a list, a row of a table, code, or a heading.

    Attributes:
        text: One line, or several of code.
        line: Where it begins in its file, from 1.
        level: That of a heading, from 1; 0 of others.
    """

    text: str
    line: int
    level: int = 0


@dataclass(frozen=True)
class Passage:
    """Some text of a document.

    Attributes:
        text: Whole blocks, a line each, or whole sentences of one.
        headings: Those that it stands under, outermost first: ``Setup > On Linux``; not the title.
        line: Where it begins in its file, from 1.
    """

    text: str
    headings: str
    line: int


def indent(depth: int) -> str:
    """Return the space before what stands in so many lists."""
    return "  " * min(depth, _MAX_INDENT)


def collapsed(text: str) -> str:
    """Return a text in one line, with single spaces."""
    return " ".join(text.split())


def joined(lines: Sequence[str]) -> str:
    """Join the lines of a paragraph; they stay where most end long before they are full.

    A line is full if the next word would make it longer than the longest.
    """
    plain = [*filter(None, map(collapsed, lines))]
    longest = 0.9 * max(map(len, plain), default=0)
    short = sum(
        len(line) + 1 + len(after.partition(" ")[0]) <= longest for line, after in pairwise(plain)
    )
    return ("\n" if 2 * short > len(plain) - 1 else " ").join(plain)


def first_heading(blocks: Sequence[Block]) -> str:
    """Return the first heading; empty without one, or with two or more beside or above it.

    It is then one of several sections, as the newest version in a list of changes.
    """
    headings = [block for block in blocks if block.level]
    above = sum(block.level <= headings[0].level for block in headings)
    return headings[0].text if 0 < above < _SECTIONS else ""


def passages_of(blocks: Iterable[Block], title: str) -> list[Passage]:
    """Divide a document: a passage has text between two headings, never a heading.

    Headings of a document with no other text are its passage.
    """
    path: list[Block] = []
    section: list[Block] = []
    passages: list[Passage] = []
    headings: list[Block] = []

    def close() -> None:
        under = " > ".join(heading.text for heading in path if heading.text)
        passages.extend(replace(made, headings=under) for made in _divided(section))
        section.clear()

    for block in blocks:
        if not block.level:
            section.append(block)
            continue
        close()
        while path and path[-1].level >= block.level:
            path.pop()
        is_title = not headings and block.text.casefold() == title.casefold()
        path.append(block._replace(text="") if is_title else block)
        headings.append(block)
    close()
    path.clear()
    return passages or list(_divided(headings))


def _divided(blocks: Sequence[Block]) -> Iterator[Passage]:
    """Yield the passages of some blocks, of about the same length; none ends with a colon."""
    pieces = [*chain.from_iterable(map(_pieces, blocks))]
    left = sum(piece.words for piece in pieces)
    parts: list[_Piece] = []
    size, goal = 0.0, _share(left)
    for piece in pieces:
        if parts and (size + piece.words > PASSAGE or size + piece.words / 2 > goal):
            last = parts[-1]
            opens = last.text.rstrip().endswith((":", "\uff1a")) and len(parts) > 1
            opens = opens and last.words + piece.words <= PASSAGE
            yield _passage(parts[:-1] if opens else parts)
            left -= size - last.words * opens
            parts, size, goal = [last] * opens, last.words * opens, _share(left)
        parts.append(piece)
        size += piece.words
    if parts and (made := _passage(parts)).text:
        yield made


def _share(words: float) -> float:
    """Divide words evenly among as few passages as hold them."""
    return words / max(1, math.ceil(words / PASSAGE))


class _Piece(NamedTuple):
    text: str
    line: int
    words: float


def _passage(parts: Sequence[_Piece]) -> Passage:
    text = "".join(part.text for part in parts)
    return Passage(text.strip("\n").rstrip(), "", parts[0].line)


def _pieces(block: Block) -> Iterator[_Piece]:
    """Yield a block, or its lines, sentences or words where it is too long, with their sizes."""
    for number, (text, words) in _parts(block.text + "\n", "lines"):
        yield _Piece(text, block.line + number, words)


def _parts(text: str, by: str) -> Iterator[tuple[int, tuple[str, float]]]:
    """Yield parts of a text, each behind the number of its line in it."""
    words = count_words(text)
    if words <= PASSAGE:
        yield 0, (text, words)
    elif by == "lines":
        for number, line in enumerate(text.splitlines(keepends=True)):
            for _, part in _parts(line, "sentences"):
                yield number, part
    elif by == "sentences":
        for sentence in sentences(text):
            yield from _parts(sentence, "words")
    else:
        for stretch in _by_words(text, words):
            yield 0, (stretch, count_words(stretch))


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text, each with the space behind it."""
    from sentencex import segment

    at = 0
    while at < len(text):  # in windows, since the time it takes grows with the square of a text
        window = text[at : at + _WINDOW]
        parts = segment("en", window)
        if "".join(parts) != window:
            parts = [window]
        if at + len(window) < len(text):  # where the last one goes on
            parts = parts[:-1] or [window[: window.rfind(" ") + 1] or window]
        yield from parts
        at += sum(map(len, parts))


def _by_words(text: str, words: float) -> Iterator[str]:
    """Yield stretches of a sentence that is longer than a passage, of about the same length."""
    goal, part, size = _share(words), "", 0.0
    for match in _UNITS.finditer(text):
        unit = match[0]
        if part and size + count_words(unit) > goal:
            yield part
            part, size = "", 0.0
        part += unit
        size += count_words(unit)
    yield part
