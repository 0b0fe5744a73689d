"""A folder walked for its documents: in order, with what is passed over and what is left out."""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from cse_core.errors import CseError, visible
from cse_core.files import read_error
from cse_defaults.documents.plugin import MARKED

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

DOCUMENTS = (*MARKED, ".txt")
"""Endings of files that are one document each in a folder."""
_MODEL = {"config.json", "config_sentence_transformers.json"}
DATA_SET = {"state.json", "dataset_dict.json"}
"""Files that tell a folder which ``save_to_disk`` of the library datasets wrote."""
_IGNORE = ".gitignore"
_MAX_IGNORE = 2**16
"""Bytes of a file of patterns that is applied."""
_MAX_STARS = 4
"""Wildcards of such a pattern; a name is compared in time that grows with a power of them."""
_STARS = re.compile(r"\*+")
_Ignores = tuple[tuple[str, "GitIgnoreSpec"], ...]


@dataclass
class Walk:
    """The documents of a folder and its subfolders, and what else is there.

    Nothing but ``.gitignore`` is opened, and no link is followed out of the folder.

    Attributes:
        folder: Where it begins; its own name and what stands above it hide nothing.
        others: Files of other kinds, by ending.
        passed_over: What is not a text of the user, by why: hidden, of a virtual environment, …
        wrong: What cannot be read, with why.
    """

    folder: Path
    others: Counter[str] = field(default_factory=Counter)
    passed_over: Counter[str] = field(default_factory=Counter)
    wrong: dict[Path, CseError] = field(default_factory=dict)

    def paths(self) -> Iterator[Path]:
        """Yield the documents, those of a folder before those of its subfolders."""
        ignores: dict[str, _Ignores] = {}

        def unreadable(error: OSError) -> None:
            self.wrong[Path(error.filename)] = read_error(error.filename, error)

        for place, folders, names in os.walk(self.folder, onerror=unreadable):
            inherited = ignores.pop(place, ())
            if Path(place) != self.folder and (kind := _kind_of_folder(names)):
                if kind == "a saved model":
                    self.wrong[Path(place)] = CseError(kind, where=place)
                else:
                    self.passed_over[kind] += 1
                folders.clear()
                continue
            if _IGNORE in names:
                inherited = (*inherited, *self._patterns(Path(place, _IGNORE)))
            folders[:] = [name for name in sorted(folders) if self._takes(place, name, inherited)]
            ignores |= {os.path.join(place, name): inherited for name in folders}
            for name in sorted(names):
                path = Path(place, name)
                is_document = path.suffix.lower() in DOCUMENTS
                if self._passes_over(place, name, inherited, is_document):
                    continue
                if not is_document:
                    self.others[path.suffix.lower() or "without an ending"] += 1
                elif self._is_inside(path):
                    yield path

    def _takes(self, place: str, name: str, ignores: _Ignores) -> bool:
        """Tell whether to walk a folder; one that is a link is left out."""
        if self._passes_over(place, name, ignores, True, "/"):
            return False
        return self._is_inside(Path(place, name))

    def _passes_over(
        self, place: str, name: str, ignores: _Ignores, counted: bool, end: str = ""
    ) -> bool:
        """Tell whether a name is not a text of the user, and count it."""
        why = ""
        if name.startswith("."):
            why = "hidden"
        elif end and name == "node_modules":
            why = name
        elif _is_ignored(os.path.join(place, name) + end, ignores):
            why = f"named by {_IGNORE}"
        if why and counted:
            self.passed_over[why] += 1
        return bool(why)

    def _is_inside(self, path: Path) -> bool:
        """Tell whether a path is a plain file or folder inside the folder; else note why not."""
        try:
            mode = path.stat().st_mode
            if path.is_symlink() and not path.resolve().is_relative_to(self.folder.resolve()):
                kind = "folder" if stat.S_ISDIR(mode) else "file"
                self.wrong[path] = CseError(f"a linked {kind}", where=str(path), hint="name it too")
            elif not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                self.wrong[path] = CseError("not a plain file", where=str(path))
        except OSError as error:
            self.wrong[path] = read_error(str(path), error)
        return path not in self.wrong

    def _patterns(self, path: Path) -> _Ignores:
        """Return the patterns of a ``.gitignore``, each file's behind its folder; bounded."""
        from pathspec import GitIgnoreSpec

        try:
            about = path.lstat()
            if not stat.S_ISREG(about.st_mode) or about.st_size > _MAX_IGNORE:
                self.wrong[path] = CseError("no file of patterns", where=str(path))
                return ()
            lines = path.read_text("utf-8", "surrogateescape").splitlines()
        except OSError as error:
            self.wrong[path] = read_error(str(path), error)
            return ()
        patterns = []
        for line in lines:
            try:
                GitIgnoreSpec.from_lines([line])
            except ValueError:
                continue  # as git does
            if len(_STARS.findall(line)) <= _MAX_STARS:
                patterns.append(line)
        return ((f"{path.parent}{os.sep}", GitIgnoreSpec.from_lines(patterns)),)

    def notes(self) -> list[str]:
        """Say what was passed over, a line for each kind of thing."""
        notes = []
        if others := ", ".join(f"{count:,} {end}" for end, count in self.others.most_common(5)):
            notes.append(f"files of other kinds are left out: {others}")
        if kinds := ", ".join(f"{count:,} {why}" for why, count in self.passed_over.most_common()):
            notes.append(f"passed over: {kinds}")
        return notes


def _kind_of_folder(names: Sequence[str]) -> str:
    """Name what a folder holds in place of documents, by its files; empty otherwise."""
    if "pyvenv.cfg" in names:
        return "virtual environment"
    if not DATA_SET.isdisjoint(names):
        return "saved data set"
    return "a saved model" if "modules.json" in names and not _MODEL.isdisjoint(names) else ""


def _is_ignored(path: str, ignores: _Ignores) -> bool:
    """Tell whether patterns name a path; those of the innermost folder decide."""
    for folder, patterns in reversed(ignores):
        named = patterns.check_file(path.removeprefix(folder)).include
        if named is not None:
            return bool(named)
    return False


def left_out(wrong: dict[Path, CseError], folder: Path, read: int, name: str) -> CseError:
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
