"""Folders of documents: titles and text of Markdown, HTML and plain files, as passages."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

from cse_core.data.columns import lacks_word_spaces
from cse_core.data.files import TextFile, file_lines
from cse_core.errors import CseError, collect_errors

MARKED = (".md", ".markdown", ".html", ".htm")
DOCUMENTS = (*MARKED, ".txt")
"""Endings of files that are one document each in a folder."""
PASSAGE = 120
"""Words of a passage, about; a longer paragraph is divided, shorter ones are joined."""
_FRONT_MATTER = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
_TITLE = re.compile(r"^title:[ \t]*[\"']?(.+?)[\"']?[ \t]*$", re.MULTILINE)
_INLINE = frozenset(
    "a abbr b bdi bdo big cite code data del dfn em font i ins kbd label mark q s samp small span "
    "strike strong sub sup time tt u var wbr".split()
)
_HIDDEN = frozenset("head script style template noscript nav svg".split())
_BLANK = re.compile(r"\n\s*\n")
_WRITTEN_TOGETHER = 1.5
"""Characters of a word in scripts without spaces, about."""


@dataclass(frozen=True)
class Document:
    """A document of a folder, by its file.

    ``title`` is what its front matter, its first heading or its head says, empty without one;
    ``passages`` are its text, the first heading too.
    """

    path: Path
    title: str
    passages: tuple[str, ...]


def read_documents(folder: Path, name: str) -> tuple[list[Document], list[str]]:
    """Return the documents of a folder and its subfolders, and what to say of files left out.

    ``name`` is what messages call the folder.
    """
    paths, others = document_files(folder)
    found: list[Document] = []
    wrong: list[CseError] = []
    for path in paths:
        with collect_errors(wrong):
            found.append(read_document(path, str(path)))
    if not found:
        raise wrong[0] if wrong else no_documents(name, others)
    kinds = ", ".join(f"{count:,} {ending}" for ending, count in others.most_common(5))
    notes = [f"{name}: files of other kinds are left out: {kinds}"] if others else []
    many = f"{len(wrong):,} of {len(paths):,} documents are left out"
    return found, [*notes, *([f"{name}: {many}: {wrong[0]}"] if wrong else [])]


def document_files(folder: Path) -> tuple[list[Path], Counter[str]]:
    """Return the documents of a folder and its subfolders in order, and other files by ending.

    Hidden files and folders are passed over.
    """
    found: list[Path] = []
    others: Counter[str] = Counter()
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            path = Path(place, name)
            if path.suffix.lower() in DOCUMENTS and not name.startswith("."):
                found.append(path)
            elif not name.startswith("."):
                others[path.suffix.lower() or "without an ending"] += 1
    return sorted(found), others


def read_document(path: Path, name: str) -> Document:
    """Return a document, its text in passages of about ``PASSAGE`` words.

    The file's ending says how it is read; ``name`` is what messages call it.
    """
    text, title = "\n".join(file_lines(TextFile(name, path, "txt"))), ""
    kind = path.suffix.lower()
    if kind in (".md", ".markdown"):
        from markdown_it import MarkdownIt

        if (front := _FRONT_MATTER.match(text)) is not None:
            title = "".join(_TITLE.findall(front[1])[:1])
            text = text[front.end() :]
        text = MarkdownIt("commonmark").enable("table").render(text)
    if kind != ".txt":
        reader = _Paragraphs()
        reader.feed(text)
        reader.close()
        text = "".join(reader.parts)
        titles = (" ".join("".join(reader.titles[tag]).split()) for tag in ("h1", "title"))
        title = title or next(filter(None, titles), "")
    paragraphs = (" ".join(each.split()) for each in _BLANK.split(text))
    return Document(path, title, tuple(_joined(filter(None, paragraphs))))


class _Paragraphs(HTMLParser):
    """Collects the visible text of a page, a blank line between its blocks, and its titles."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.titles: dict[str, list[str]] = {"title": [], "h1": []}
        self._hidden: list[str] = []
        self._title = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag in _HIDDEN:
            self._hidden.append(tag)
        if tag in self.titles and not self.titles[tag]:
            self._title = tag
        self._end_block(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._hidden:
            del self._hidden[self._hidden.index(tag) :]
        if tag == self._title:
            self._title = ""
        self._end_block(tag)

    def handle_data(self, data: str) -> None:
        if self._title:
            self.titles[self._title].append(data)
        if not self._hidden:
            self.parts.append(_BLANK.sub("\n", data))

    def _end_block(self, tag: str) -> None:
        if tag not in _INLINE:
            self.parts.append(" " if tag in ("td", "th", "br") else "\n\n")


def _joined(paragraphs: Iterator[str]) -> Iterator[str]:
    """Yield short paragraphs together, and long ones in pieces."""
    held: list[str] = []
    size = 0.0
    for paragraph in paragraphs:
        for piece in _pieces(paragraph):
            own = _size(piece)
            if held and size + own > PASSAGE:
                yield " ".join(held)
                held, size = [], 0.0
            held.append(piece)
            size += own
    if held:
        yield " ".join(held)


def _pieces(paragraph: str) -> Iterator[str]:
    count = -(-_size(paragraph) // PASSAGE)
    if count <= 1:
        yield paragraph
        return
    spaced = not lacks_word_spaces([paragraph])
    words = paragraph.split() if spaced else list(paragraph)
    length = int(-(-len(words) // count))
    for start in range(0, len(words), length):
        yield (" " if spaced else "").join(words[start : start + length]).strip()


def _size(text: str) -> float:
    """Return how many words a text has, about."""
    return len(text) / _WRITTEN_TOGETHER if lacks_word_spaces([text]) else len(text.split())


def no_documents(name: str, others: Counter[str]) -> CseError:
    """Return the error of a folder without documents."""
    there = ", ".join(f"{count} {ending}" for ending, count in others.most_common(5))
    what = f"no document is in this folder{f' ({there})' if there else ''}"
    hint = f"these are read: {', '.join(DOCUMENTS)}; name tables by their file"
    return CseError(what, where=name, hint=hint)
