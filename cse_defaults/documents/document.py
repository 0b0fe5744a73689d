"""A file read as a document: its title and its passages."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cse_core.errors import CseError, visible
from cse_core.files import open_bytes
from cse_core.registry.names import unpacked
from cse_defaults.documents.html import read_html
from cse_defaults.documents.markdown import front_matter, read_markdown
from cse_defaults.documents.passages import (
    MAX_TITLE_LETTERS,
    Block,
    Passage,
    collapsed,
    first_heading,
    joined,
    passages_of,
)

MAX_BYTES = 2**26
"""Bytes of a document."""
_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_CHARSET = re.compile(rb"(?:charset|encoding)\s{0,9}=\s{0,9}[\"']?\s{0,9}([\w.:-]{1,40})", re.I)
_DECLARED = 1024
"""Bytes of a page that may say how it is encoded."""
_WIDE = frozenset(("ascii", "iso8859-1"))
"""Encodings by whose names pages mean windows-1252, which holds them (WHATWG)."""

_RULE = re.compile(r"\s*([=\-~^*#+_\"'])\1{2,}\s*")
"""A line under a heading, or between two parts of a plain text."""
_ITEM = re.compile(r"\s*(?:[-*+•–]|\d{1,3}[.)])\s+\S")
_COLUMNS = re.compile(r"\t|\||\s{3}")
"""What stands in the first line of a table."""
_ENDS = frozenset(".!?;,:")
_MAX_CAPITALS = 80
"""Letters of a heading without small letters."""
_LEVEL_OF_CAPITALS = 9
"""Below all others; such a heading is never the title."""


@dataclass(frozen=True)
class Document:
    """A document.

    Attributes:
        path: Its file.
        title: What its front matter, ``<title>``, its first heading or its file's name says.
        blocks: All that it says.
        passages: Its text, divided.
        left_out: Letters of a page beside its text.
    """

    path: Path
    title: str
    blocks: tuple[Block, ...]
    passages: tuple[Passage, ...]
    left_out: int = 0

    @property
    def text(self) -> str:
        """Return the whole text, with its headings."""
        return "\n".join(block.text for block in self.blocks)


def read_document(path: Path) -> Document:
    """Read a document; the file's ending says how.

    Raises:
        CseError: If it cannot be read, or has no text.
    """
    name = str(path)
    try:
        name.encode()
    except UnicodeEncodeError:
        what = "its name is not UTF-8"
        raise CseError(what, where=visible(name), hint="rename it") from None
    stem, _, ending = unpacked(path.name).rpartition(".")
    text, title, left = _text(name, ending.startswith("htm")), "", 0
    if ending in ("md", "markdown"):
        title, body = front_matter(text)
        blocks = [*read_markdown(body, 1 + text.count("\n", 0, len(text) - len(body)))]
    elif ending.startswith("htm"):
        page = read_html(text, name)
        title, blocks, left = page.title, [*page.blocks], page.left_out
    else:
        blocks = [*_paragraphs(text)]
    blocks = [
        block._replace(level=block.level * (len(block.text) <= MAX_TITLE_LETTERS))
        for block in blocks
    ]
    named = first_heading([b for b in blocks if b.level != _LEVEL_OF_CAPITALS])
    title = (title or named or collapsed(path.name[: len(stem)]))[:MAX_TITLE_LETTERS]
    if not (passages := passages_of(blocks, title)):
        raise CseError("contains no text", where=name, hint="write some, or remove the file")
    return Document(path, title, tuple(blocks), tuple(passages), left)


def _text(name: str, is_page: bool) -> str:
    """Return the text of a file, its lines ended by line feeds.

    It is in the encoding that its first bytes mark or, in a page, declare; else in UTF-8.
    """
    with open_bytes(name) as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        what = f"more than {MAX_BYTES >> 20} MiB"
        raise CseError(what, where=name, hint="divide it")
    encoding = next((kind for mark, kind in _MARKS.items() if data.startswith(mark)), "")
    if not encoding and is_page and (declared := _CHARSET.search(data[:_DECLARED])):
        encoding = declared[1].decode("ascii", "replace")
    try:
        encoding = codecs.lookup(encoding or "utf-8").name
        text = data.decode("cp1252" if encoding in _WIDE else encoding)
    except (LookupError, UnicodeError, ValueError) as error:
        shown = (encoding or "utf-8").upper()
        hint = "convert it, for example: iconv -f LATIN1 -t UTF-8 OLD > NEW"
        raise CseError(f"not {shown}", where=name, hint=hint) from error
    if "\0" in text:
        hint = "name a text file, or remove the bytes: tr -d '\\000' < OLD > NEW"
        raise CseError("contains a NUL byte, so it is not text", where=name, hint=hint)
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def _paragraphs(text: str) -> Iterator[Block]:
    """Yield the paragraphs of a plain text, the items of its lists, and its headings.

    A heading is a line behind a blank one that is underlined, or has no small letters and a blank
    line behind it. The kinds of underlines have their levels in the order in which they come.
    """
    begin, lines, marks = 1, list[str](), list[str]()
    for number, line in enumerate((*text.split("\n"), ""), 1):
        rule, is_blank = _RULE.fullmatch(line), not line.strip()
        above = lines[0].strip() if rule and len(lines) == 1 else ""
        if rule and above and 2 * len(rule[0].strip()) >= len(above) and not _COLUMNS.search(above):
            marks += [rule[1]] * (rule[1] not in marks)
            yield Block(collapsed(above), begin, 1 + marks.index(rule[1]))
            lines.clear()
        elif lines and (rule or is_blank or _ITEM.match(line)):
            said = joined(lines)
            is_heading = is_blank and len(lines) == 1 and len(said) <= _MAX_CAPITALS
            is_heading = is_heading and said.isupper() and said[-1] not in _ENDS
            yield Block(said, begin, _LEVEL_OF_CAPITALS * is_heading)
            lines.clear()
        if not (rule or is_blank):
            begin = begin if lines else number
            lines.append(line)
