"""The STS suite: which files belong to it, and where they are looked for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cse_cli.plugins.data_folder import DATA_VARIABLE, data_folder
from cse_cli.texts.tables import SUFFIXES
from cse_core.errors import CseError
from cse_evaluation.pairs import PairSet, read_pairs

STS_TESTS = (
    "sts12.test",
    "sts13.test",
    "sts14.test",
    "sts15.test",
    "sts16.test",
    "stsb.test",
    "sickr.test",
)
"""The seven test sets whose mean the papers report."""
STS_DEVS = ("stsb.dev", "sickr.dev")
STS_FILES = STS_TESTS + STS_DEVS
"""Every file of the suite, without its ending."""
CHINESE_FILES = ("cstsb.test", "cstsb.dev")
"""The files of the Chinese suite: STS-B translated to Chinese."""


@dataclass(frozen=True)
class Suite:
    """The files of the suite that are there.

    Attributes:
        folder: Where they are.
        sets: The sets read, in the order of ``STS_FILES``.
        missing: Names of the test sets that are not there.
    """

    folder: Path
    sets: tuple[PairSet, ...]
    missing: tuple[str, ...]


def locate_suite(data_dir: str | os.PathLike[str] | None = None) -> dict[str, Path | None]:
    """Return where each file of the suite is, None for a missing one, without reading any.

    Files stand in the folder itself or in its subfolder ``sts``; where a set stands in several
    formats, the first of ``SUFFIXES`` is taken.
    """
    return locate_files(STS_FILES, "sts", data_dir)


def locate_files(
    names: Sequence[str], below: str, data_dir: str | os.PathLike[str] | None = None
) -> dict[str, Path | None]:
    """Return where each named table is in the data folder or its subfolder ``below``, or None."""
    folder, _ = data_folder(data_dir)
    places = (folder, folder / below)
    return {
        name: next(
            (
                path
                for place in places
                for suffix in SUFFIXES
                if os.path.isfile(path := place / (name + suffix))
            ),
            None,
        )
        for name in names
    }


def existing_folder(data_dir: str | os.PathLike[str] | None, what: str, fetched: str = "") -> Path:
    """Return the data folder.

    Args:
        data_dir: As for ``data_folder``.
        what: What is looked for in it, for the error.
        fetched: The name by which `cse data fetch` brings it, if it does.

    Raises:
        CseError: If it is not there.
    """
    folder, origin = data_folder(data_dir)
    if not os.path.isdir(folder):
        shown = "this is not a directory" if os.path.exists(folder) else "no such directory"
        hint = f"name the folder of {what} with --data-dir DIR or {DATA_VARIABLE}"
        if fetched and origin != "--data-dir":
            hint = f"`cse data fetch {fetched}` brings them; or {hint}"
        raise CseError(f"{shown} (from {origin})", where=str(folder), hint=hint)
    return folder


def find_suite(data_dir: str | os.PathLike[str] | None = None) -> Suite:
    """Read what there is of the STS suite.

    Args:
        data_dir: As for ``data_folder``.

    Raises:
        CseError: If the folder is not there or holds no file of the suite, or a file is broken.
    """
    folder = existing_folder(data_dir, "the STS files", "sts")
    return _read_suite(locate_suite(data_dir), folder, "STS", STS_TESTS)


def find_chinese(data_dir: str | os.PathLike[str] | None = None) -> Suite:
    """Read what there is of the Chinese suite, in the folder or its subfolder ``chinese``.

    Raises:
        CseError: As ``find_suite``.
    """
    folder = existing_folder(data_dir, "the Chinese files")
    found = locate_files(CHINESE_FILES, "chinese", data_dir)
    return _read_suite(found, folder, "Chinese", CHINESE_FILES)


def _read_suite(
    found: dict[str, Path | None], folder: Path, what: str, wanted: Sequence[str]
) -> Suite:
    sets = tuple(read_pairs(path) for path in found.values() if path)
    if not sets:
        brings = "`cse data fetch sts` brings them; or " if what == "STS" else ""
        raise CseError(
            f"no {what} file is here or in its subfolder {what.lower()} "
            f"(such as {wanted[0]}{SUFFIXES[0]})",
            where=str(folder),
            hint=f"{brings}name the folder of the {what} files with --data-dir DIR or "
            f"{DATA_VARIABLE}",
        )
    missing = tuple(name for name in wanted if found[name] is None)
    return Suite(next(path.parent for path in found.values() if path), sets, missing)
