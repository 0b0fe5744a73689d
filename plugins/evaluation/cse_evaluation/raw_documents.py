"""Documents as their owners publish them, as articles that the suites read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import Any

from cse_evaluation.raw_files import Raw, lines_of

_OPENING = re.compile(r'<doc id="(?P<id>[^"]*)".*title="(?P<title>[^"]*)">')
_END = re.compile(r"""(?<=[.!?])["')\]]*\s+(?=["'(\[]*[A-Z0-9£$])""")
_SHORT = re.compile(r"\b(?:Mr|Mrs|Ms|Dr|St|Jr|Sr|vs|No|Inc|Co|Ltd|Prof|Gen|Gov|Sen|U\.S|[A-Z])\.$")
"""Abbreviations and initials, whose full stop ends no sentence."""
_HEADING = 80
"""Characters of a heading at most."""


def sentences_of(paragraph: str) -> list[str]:
    """Split a paragraph where a full stop, ! or ? is followed by a space and a capital letter."""
    found: list[str] = []
    start = 0
    for match in _END.finditer(paragraph):
        piece = paragraph[start : match.start()]
        if _SHORT.search(piece):
            continue
        found.append(paragraph[start : match.end()].strip())
        start = match.end()
    found.append(paragraph[start:].strip())
    return [sentence for sentence in found if sentence]


def stories(raw: Raw) -> Iterator[dict[str, Any]]:
    """Yield news stories: ``LABEL/NUMBER.txt``, the title in the first line.

    One that is there twice is taken once.
    """
    seen: set[str] = set()
    for name in sorted(raw):
        *_, label, file = ("", *name.split("/"))
        if not re.fullmatch(r"\d+\.txt", file) or name.startswith("__MACOSX"):
            continue
        title, *rest = (line.strip() for line in lines_of(raw[name]))
        paras = [sentences_of(line) for line in rest if line]
        text = repr(paras)
        if not title or not paras or text in seen:
            continue
        seen.add(text)
        number = file.removesuffix(".txt")
        yield {"id": f"{label}/{number}", "label": label, "title": title.strip("."), "paras": paras}


def articles(raw: Raw) -> Iterator[dict[str, Any]]:
    """Yield articles of WikiExtractor's text that have a sentence; a short line is a heading."""
    for name in sorted(raw):
        opening: re.Match[str] | None = None
        lines: list[str] = []
        for line in lines_of(raw[name]):
            if found := _OPENING.match(line):
                opening, lines = found, []
            elif line == "</doc>" and opening is not None:
                sections = _sections(lines[1:])
                if sections:
                    title = unescape(opening["title"])
                    yield {"id": opening["id"], "title": title, "sections": sections}
                opening = None
            elif line.strip():
                lines.append(unescape(line.strip()))


def _sections(lines: list[str]) -> list[list[Any]]:
    """Return headings with their sentences; a heading without any is left out."""
    sections: list[list[Any]] = [["", []]]
    for number, line in enumerate(lines):
        short = len(line) <= _HEADING and line.endswith(".") and len(line.split()) <= 10
        if short and number and not re.search(r"[.!?,;]\s", line):
            sections.append([line.removesuffix("."), []])
        elif line[-1] in ".!?\"')":
            sections[-1][1].extend(sentences_of(line))
    return [section for section in sections if section[1]]
