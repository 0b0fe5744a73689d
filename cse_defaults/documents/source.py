"""The source of documents: rows of their passages, and notes on what is left out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cse_core.errors import CseError
from cse_core.texts import Seen, Wanted
from cse_defaults.documents.document import Document, read_document
from cse_defaults.documents.passages import PASSAGE
from cse_defaults.documents.walk import DATA_SET, DOCUMENTS, Walk, left_out


def has_documents(name: str) -> bool:
    """Tell whether a folder has documents, readable or not; a saved data set has none."""
    walk = Walk(Path(name).expanduser())
    saved = any((walk.folder / file).is_file() for file in DATA_SET)
    found = walk.folder.is_dir() and not saved and next(walk.paths(), None)
    return bool(found) or any(path.suffix.lower() in DOCUMENTS for path in walk.wrong)


class Documents:
    """The passages of a folder's documents, or of one."""

    def __init__(self) -> None:
        self.seen = Seen(articles=True)

    def rows(self, name: str, wanted: Wanted) -> Iterator[tuple[str, dict[str, str]]]:
        """Yield the passages, each with its title, file, headings and line, or whole documents.

        A file that cannot be read is left out of a folder, with a message.
        """
        path = Path(name).expanduser()
        whole, counts = wanted.unit == "document", [0, 0, 0, 0]
        if not path.is_dir():
            yield from _rows(read_document(path), path.name, whole, counts)
            self._say(counts)
            return
        walk = Walk(path)
        for file in walk.paths():
            try:
                document = read_document(file)
            except CseError as error:
                walk.wrong[file] = error
                continue
            yield from _rows(document, str(file.relative_to(path)), whole, counts)
        if walk.wrong:
            wrong = left_out(walk.wrong, path, counts[0], name)
            if not counts[0]:
                raise wrong
            self.seen.messages.append(str(wrong).removeprefix(f"{name}: "))
        if not counts[0]:
            kinds = "; ".join(walk.notes())
            what = f"no document is in this folder{f' ({kinds})' if kinds else ''}"
            hint = f"these are read: {', '.join(DOCUMENTS)}; name tables by their file"
            raise CseError(what, where=name, hint=hint)
        self.seen.messages += walk.notes()
        self._say(counts)

    def _say(self, counts: list[int]) -> None:
        documents, passages, pages, letters = counts
        if pages:
            what = f"left out beside the text of {pages:,} HTML page{'s' * (pages > 1)}"
            more = "navigation, headers, footers, banners, scripts, styles"
            self.seen.messages.append(f"{what}: {letters:,} letters ({more})")
        are = "document" if documents == 1 else "documents"
        said = f"{documents:,} {are} in {passages:,} passages of at most {PASSAGE} words"
        self.seen.messages.append(said)


def _rows(
    document: Document, name: str, whole: bool, counts: list[int]
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the rows of a document, and count it."""
    counts[0] += 1
    counts[1] += len(document.passages)
    counts[2] += document.left_out > 0
    counts[3] += document.left_out
    about = {"title": document.title, "document": name}
    if whole:
        yield str(document.path), {"text": document.text, **about}
        return
    for passage in document.passages:
        place = {"headings": passage.headings, "line": str(passage.line)}
        yield f"{document.path}, line {passage.line}", {"text": passage.text, **about, **place}
