"""Folders of documents: titles and text of Markdown, HTML and plain files, as passages."""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from itertools import chain
from pathlib import Path

from cse_core.errors import CseError, visible
from cse_core.texts import Wanted
from cse_defaults.texts.columns import lacks_word_spaces
from cse_defaults.texts.files import file_lines, is_saved, read_error
from cse_defaults.texts.tables import Seen, has_lone_surrogate

MARKED = (".md", ".markdown", ".html", ".htm")
DOCUMENTS = (*MARKED, ".txt")
"""Endings of files that are one document each in a folder."""
PASSAGE = 120
"""Words of a passage, about; a longer paragraph is divided, shorter ones are joined."""
_FRONT_MATTER = re.compile(r"\A(---|\+\+\+)[ \t]*\n(.*?\n)??\1[ \t]*(?:\n|\Z)", re.DOTALL)
_INLINE = frozenset(
    "a abbr b bdi bdo big cite code data del dfn em font i ins kbd label mark q s samp small span "
    "strike strong sub sup time tt u var wbr".split()
)
_TITLE = re.compile(r"^title[ \t]*[:=][ \t]*[\"']?(.+?)[\"']?[ \t]*$", re.MULTILINE)
_MODEL = {"config.json", "config_sentence_transformers.json"}
_HIDDEN = frozenset("head title script style template noscript nav svg".split())
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


def has_documents(name: str) -> bool:
    """Tell whether a folder is one of documents."""
    folder = Path(name).expanduser()
    return folder.is_dir() and not is_saved(folder) and bool(document_files(folder)[0])


class Documents:
    """The passages of a folder's documents, a source."""

    def __init__(self) -> None:
        self.seen = Seen(articles=True)

    def rows(self, name: str, wanted: Wanted) -> Iterator[tuple[str, dict[str, str]]]:
        """Yield the passages, or whole documents, with title and file."""
        folder = Path(name).expanduser()
        documents, notes = read_documents(folder, name)
        count = sum(len(document.passages) for document in documents)
        said = f"{len(documents):,} documents in {count:,} passages of about {PASSAGE} words"
        self.seen.messages += [*(note.removeprefix(f"{name}: ") for note in notes), said]
        for document in documents:
            about = {"title": document.title, "document": str(document.path.relative_to(folder))}
            whole = wanted.unit == "document"
            for text in ("\n".join(document.passages),) if whole else document.passages:
                yield str(document.path), {"text": text, **about}


def read_documents(folder: Path, name: str) -> tuple[list[Document], list[str]]:
    """Return the documents of a folder and its subfolders, and what to say of files left out.

    ``name`` is what messages call the folder.
    """
    paths, others, wrong = document_files(folder)
    read: list[Document] = []
    for path in paths:
        try:
            read.append(read_document(path))
        except CseError as error:
            wrong[path] = error
    if wrong and not read:
        raise _left_out(wrong, folder, 0, name)
    kinds = ", ".join(f"{count:,} {ending}" for ending, count in others.most_common(5))
    if not read:
        what = f"no document is in this folder{f' ({kinds})' if kinds else ''}"
        hint = f"these are read: {', '.join(DOCUMENTS)}; name tables by their file"
        raise CseError(what, where=name, hint=hint)
    notes = [f"{name}: files of other kinds are left out: {kinds}"] if others else []
    if wrong:
        notes.append(str(_left_out(wrong, folder, len(read), name)))
    return read, notes


def _left_out(wrong: dict[Path, CseError], folder: Path, read: int, name: str) -> CseError:
    """Make one error of all that is left out, by reason, with the hint of the most frequent."""
    first = {error.what: (path, error) for path, error in reversed(wrong.items())}
    by_reason = Counter(error.what for error in wrong.values()).most_common()
    said = []
    for what, count in by_reason:
        shown = visible(str(first[what][0].relative_to(folder)))
        said.append(f"{what} ({f'{count:,}: {shown}, …' if count > 1 else shown})")
    verb = "is" if len(wrong) == 1 else "are"
    what = f"{len(wrong):,} of {len(wrong) + read:,} {verb} left out: {', '.join(said)}"
    hints = (first[reason][1].hint for reason, _ in by_reason)
    return CseError(what, where=name, hint=next(filter(None, hints), None))


def document_files(folder: Path) -> tuple[list[Path], Counter[str], dict[Path, CseError]]:
    """Return the documents of a folder and its subfolders in order, and what else is there.

    That is other files by ending, and what is not read, with why: links that lead out of the
    folder, what is not a plain file, folders of models or without permission. Hidden ones are
    passed over. Nothing is opened.
    """
    paths: list[Path] = []
    others: Counter[str] = Counter()
    wrong: dict[Path, CseError] = {}

    def unreadable(error: OSError) -> None:
        wrong[Path(error.filename)] = read_error(error.filename, error)

    for place, folders, names in os.walk(folder, onerror=unreadable):
        if "modules.json" in names and not _MODEL.isdisjoint(names) and Path(place) != folder:
            wrong[Path(place)] = CseError("a saved model", where=place)
            folders.clear()
            continue
        folders[:] = [name for name in sorted(folders) if not name.startswith(".")]
        for path in (Path(place, name) for name in folders):
            _check_place(path, folder, wrong)
        for path in (Path(place, name) for name in sorted(names) if not name.startswith(".")):
            if path.suffix.lower() not in DOCUMENTS:
                others[path.suffix.lower() or "without an ending"] += 1
            elif _check_place(path, folder, wrong):
                paths.append(path)
    return sorted(paths), others, wrong


def _check_place(path: Path, folder: Path, wrong: dict[Path, CseError]) -> bool:
    """Tell whether a path is a plain file or folder inside a folder; else note why not."""
    try:
        mode = path.stat().st_mode
        if path.is_symlink() and not path.resolve().is_relative_to(folder.resolve()):
            kind = "folder" if stat.S_ISDIR(mode) else "file"
            wrong[path] = CseError(f"a linked {kind}", where=str(path), hint="name it too")
        elif not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            wrong[path] = CseError("not a plain file", where=str(path))
    except OSError as error:
        wrong[path] = read_error(str(path), error)
    return path not in wrong


def read_document(path: Path) -> Document:
    """Return a document, its text in passages of about ``PASSAGE`` words.

    The file's ending says how it is read.
    """
    name = str(path)
    if has_lone_surrogate(name):
        raise CseError("its name is not UTF-8", where=visible(name), hint="rename it")
    text, title = "\n".join(file_lines(name)), ""
    kind = path.suffix.lower()
    if kind in (".md", ".markdown"):
        from markdown_it import MarkdownIt

        title, text = _front_matter(text)
        text = MarkdownIt("commonmark").enable("table").render(text)
    if kind != ".txt":
        reader = _Paragraphs()
        reader.feed(text)
        reader.close()
        text = "".join(reader.parts)
        titles = (" ".join("".join(reader.titles[tag]).split()) for tag in ("h1", "title"))
        title = title or next(filter(None, titles), "")
    paragraphs = (" ".join(lines.split()) for lines in _BLANK.split(text))
    if not (passages := tuple(_joined(filter(None, paragraphs)))):
        raise CseError("contains no text", where=name, hint="write some, or remove the file")
    return Document(path, title, passages)


def _front_matter(text: str) -> tuple[str, str]:
    """Return the title that YAML or TOML before a text gives, and the text without it."""
    if (front := _FRONT_MATTER.match(text)) is None:
        return "", text
    import yaml

    inside, loader = front[2] or "", getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # of texts alone
    try:
        fields = (yaml.load(inside, loader) if front[1] == "---" else tomllib.loads(inside)) or {}
    except Exception:  # of two libraries; a colon in a title is enough
        fields = {"title": "".join(_TITLE.findall(inside)[:1])}
    if not isinstance(fields, dict):  # a text between two lines
        return "", text
    title = fields.get("title")
    title = title if isinstance(title, str) and title not in ("~", "null") else ""
    return " ".join(title.split()), text[front.end() :]


class _Paragraphs(HTMLParser):
    """Collects the visible text of a page, a blank line between its blocks, and its titles.

    What a hidden element holds is dropped at its end tag; without one, as HTML lets authors omit
    that of a head, its text stays.
    """

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.titles: dict[str, list[str]] = {"title": [], "h1": []}
        self._hidden: list[tuple[str, int]] = []
        self._title = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._end_block(tag)
        if tag in self.titles and not self.titles[tag] and "svg" not in dict(self._hidden):
            self._title = tag
        if tag in _HIDDEN:
            self._hidden.append((tag, len(self.parts)))

    def handle_endtag(self, tag: str) -> None:
        if tag in dict(self._hidden):
            while self._hidden[-1][0] != tag:
                self._hidden.pop()
            del self.parts[self._hidden.pop()[1] :]
        if tag == self._title:
            self._title = ""
        self._end_block(tag)

    def handle_data(self, data: str) -> None:
        if self._title:
            self.titles[self._title].append(data)
        self.parts.append(_BLANK.sub("\n", data))

    def _end_block(self, tag: str) -> None:
        if tag not in _INLINE:
            self.parts.append(" " if tag in ("td", "th", "br") else "\n\n")
            if self._title:
                self.titles[self._title].append(" ")


def _joined(paragraphs: Iterator[str]) -> Iterator[str]:
    """Yield short paragraphs together, and long ones in pieces."""
    parts: list[str] = []
    size = 0.0
    for piece in chain.from_iterable(map(_pieces, paragraphs)):
        words = _size(piece)
        if parts and size + words > PASSAGE:
            yield " ".join(parts)
            parts, size = [], 0.0
        parts.append(piece)
        size += words
    if parts:
        yield " ".join(parts)


def _pieces(paragraph: str) -> list[str]:
    """Divide a long paragraph."""
    count = int(-(-_size(paragraph) // PASSAGE))
    if count <= 1:
        return [paragraph]
    spaced = not lacks_word_spaces([paragraph])
    words = paragraph.split() if spaced else list(paragraph)
    length, between = -(-len(words) // count), " " if spaced else ""
    starts = range(0, len(words), length)
    return [between.join(words[start : start + length]).strip() for start in starts]


def _size(text: str) -> float:
    """Estimate the number of words of a text."""
    return len(text) / _WRITTEN_TOGETHER if lacks_word_spaces([text]) else len(text.split())
