"""The tables of a data folder, sorted by their columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cse_cli.texts.tables import SUFFIXES, stem
from cse_core.errors import CseError


def table_files(folder: Path, endings: str | tuple[str, ...] = SUFFIXES) -> list[Path]:
    """Return the table files of a folder by name; none if it does not exist."""
    if not folder.is_dir():
        return []
    files = sorted(folder.iterdir())
    return [path for path in files if path.name.lower().endswith(endings) and path.is_file()]


@dataclass(frozen=True)
class Located:
    """The tables of some folders, as their columns sort them.

    Attributes:
        files: Those that fit, by name without endings.
        others: Those that do not.
        broken: Why others cannot be looked at, an error for each.
    """

    files: dict[str, Path]
    others: tuple[Path, ...]
    broken: tuple[CseError, ...]


def locate_tables(places: Sequence[Path], fits: Callable[[Path], bool]) -> Located:
    """Look through folders for tables that fit; one that is broken hides none of the others.

    Where one name stands there several times, the first place and the first of ``SUFFIXES`` whose
    table fits is taken, and the rest is not looked at.

    Args:
        places: The folders, the preferred ones first; one that is not there holds nothing.
        fits: Tells by its columns whether a table fits.
    """
    files: dict[str, Path] = {}
    others: list[Path] = []
    broken: list[CseError] = []
    for place in places:
        for path in sorted(table_files(place), key=lambda path: (stem(path), _preference(path))):
            if stem(path) in files:
                continue
            try:
                if fits(path):
                    files[stem(path)] = path
                else:
                    others.append(path)
            except CseError as error:
                broken.append(error)
    return Located(files, tuple(others), tuple(broken))


def _preference(path: Path) -> int:
    return next(i for i, end in enumerate(SUFFIXES) if path.name.lower().endswith(end))
