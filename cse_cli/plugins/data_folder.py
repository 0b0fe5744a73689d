"""The folder in which the files of suites are looked for."""

from __future__ import annotations

import os
from pathlib import Path

DATA_VARIABLE = "CSE_DATA_DIR"
"""Environment variable with the folder of the suites' files."""


def data_folder(data_dir: str | os.PathLike[str] | None = None) -> tuple[Path, str]:
    """Return the folder of data sets, and what chose it: the flag, ``CSE_DATA_DIR`` or neither."""
    if data_dir is not None:
        return Path(data_dir), "--data-dir"
    if variable := os.environ.get(DATA_VARIABLE):
        return Path(variable), DATA_VARIABLE
    import platformdirs

    return Path(platformdirs.user_data_dir("cse")), "default"
