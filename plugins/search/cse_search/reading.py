"""What is searched: the passages of files and folders, where they stand, and if they changed."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cse_cli.api import read_rows
from cse_core.errors import CseError
from cse_core.texts import in_context

if TYPE_CHECKING:
    from cse_cli.api import Registry


@dataclass(frozen=True, slots=True)
class Passage:
    """A text that can be the answer, and its place.

    Attributes:
        text: What a reader is shown.
        title: Of its document, empty without one.
        headings: Those it stands under, outermost first: ``Setup > On Linux``.
        file: The file that it is in, or the name of a data set.
        row: Its number there, from 1: of the row of a table, of the passage of a document.
        line: Where it begins in a document, from 1; None where that is not known.
    """

    text: str
    title: str
    headings: str
    file: str
    row: int
    line: int | None

    def embedded(self, titles: bool) -> str:
        """Return what is encoded: the text, behind its title and headings with ``titles``."""
        return in_context(self.text, self.title, self.headings) if titles else self.text

    @property
    def place(self) -> dict[str, Any]:
        """Return where it is, as ``cse search --json`` has it."""
        return {name: getattr(self, name) for name in ("title", "headings", "file", "row", "line")}


def read_passages(
    files: Sequence[str], registry: Registry, columns: Mapping[str, str] | None = None
) -> list[Passage]:
    """Return the passages of files, folders and data sets in their order; blank ones are counted.

    Raises:
        CseError: If one cannot be read, or no text is in them.
    """
    passages: list[Passage] = []
    rows = Counter[str]()
    for file, row in read_rows(files, registry, dict(columns or {})):
        rows[file] += 1
        if row["text"].strip():
            line = int(row["line"]) if row.get("line") else None
            title, headings = row.get("title", ""), row.get("headings", "")
            passages.append(Passage(row["text"], title, headings, file, rows[file], line))
    if not passages:
        raise CseError("no text is in these files", where=files[0])
    return passages


def once(passages: Iterable[Passage], titles: bool) -> dict[str, list[Passage]]:
    """Return passages by what is encoded of them, so that equal ones are one answer."""
    places: dict[str, list[Passage]] = {}
    for passage in passages:
        places.setdefault(passage.embedded(titles), []).append(passage)
    return places


def state_of(files: Iterable[str], named: Sequence[str]) -> dict[str, Any]:
    """Describe files as they are now, for :func:`changes`.

    Args:
        files: Those that were read.
        named: What the user named, folders among them.

    Returns:
        ``files`` has size and time of change by path, ``folders`` the time of change of folders in
        or below which documents were read, and of those beside them, and what else is there with
        such an ending, or a folder.
    """
    paths = {path: found for path in {*files} if (found := _seen(path))}
    roots = [Path(name) for name in named if Path(name).is_dir()]
    direct = {Path(path).parent for path in paths}
    inside = {folder for one in direct for folder in (one, *one.parents)
              if any(folder.is_relative_to(root) for root in roots)}  # fmt: skip
    others = {str(folder): sorted(_others(str(folder), paths)) for folder in {*inside, *roots}}
    others |= {
        empty: sorted(_others(empty, paths))
        for folder, names in list(others.items())
        for name in names
        if (empty := os.path.join(folder, name)) not in others and os.path.isdir(empty)
    }
    folders = {folder: [_seen(folder), names] for folder, names in others.items()}
    return {"files": paths, "folders": folders}


def changes(state: Mapping[str, Any]) -> dict[str, int]:
    """Count the files that have ``changed``, are ``gone`` or ``new`` since their state was kept."""
    counts = Counter[str]()
    files = state["files"]
    for path, before in files.items():
        if before != (now := _seen(path)):
            counts["changed" if now else "gone"] += 1
    for folder, (before, others) in state["folders"].items():
        if before != _seen(folder):
            counts["new"] += len(_others(folder, files).difference(others))
    return {name: count for name in ("changed", "gone", "new") if (count := counts[name])}


def _seen(path: str) -> list[int] | None:
    """Return size and time of change of a file or folder; None if it is not there."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return [found.st_size, found.st_mtime_ns]


def _others(folder: str, files: Mapping[str, Any]) -> set[str]:
    """Return folders in a folder, and what is not among the files with an ending of theirs."""
    endings, others = {os.path.splitext(path)[1] for path in files}, set[str]()
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            known = entry.is_dir() or os.path.splitext(entry.name)[1] in endings
            if known and entry.name[0] != "." and entry.path not in files:
                others.add(entry.name)
    return others
