"""The STS suite: which files belong to it, and where they are looked for."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from cse_core.errors import CseError
from cse_core.evaluation.pairs import PairSet, read_pairs
from cse_core.evaluation.tables import SUFFIXES

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
DATA_VARIABLE = "CSE_DATA_DIR"


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


def data_folder(data_dir: str | os.PathLike[str] | None = None) -> tuple[Path, str]:
    """Return the folder in which data sets are looked for, and what chose it.

    Args:
        data_dir: The folder that the user named; else ``CSE_DATA_DIR``; else the user's data
            folder of this system.
    """
    if data_dir is not None:
        return Path(data_dir), "--data-dir"
    if variable := os.environ.get(DATA_VARIABLE):
        return Path(variable), DATA_VARIABLE
    import platformdirs

    return Path(platformdirs.user_data_dir("cse")), "default"


def locate_suite(data_dir: str | os.PathLike[str] | None = None) -> dict[str, Path | None]:
    """Return where each file of the suite is, None for a missing one, without reading any.

    Files stand in the folder itself or in its subfolder ``sts``; where a set stands in several
    formats, the first of ``SUFFIXES`` is taken.
    """
    folder, _ = data_folder(data_dir)
    places = (folder, folder / "sts")
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
        for name in STS_FILES
    }


def find_suite(data_dir: str | os.PathLike[str] | None = None) -> Suite:
    """Read what there is of the STS suite.

    Args:
        data_dir: As for ``data_folder``.

    Raises:
        CseError: If the folder is not there or holds no file of the suite, or a file is broken.
    """
    folder, origin = data_folder(data_dir)
    hint = f"name the folder of the STS files with --data-dir DIR or {DATA_VARIABLE}"
    if not os.path.isdir(folder):
        what = "this is not a directory" if os.path.exists(folder) else "there is no such directory"
        raise CseError(f"{what} (from {origin})", where=str(folder), hint=hint)
    found = locate_suite(data_dir)
    sets = tuple(read_pairs(path) for path in found.values() if path)
    if not sets:
        raise CseError(
            f"no STS file is here or in its subfolder sts (such as {STS_FILES[0]}{SUFFIXES[0]})",
            where=str(folder),
            hint=hint,
        )
    missing = tuple(name for name in STS_TESTS if found[name] is None)
    return Suite(next(path.parent for path in found.values() if path), sets, missing)
