"""The data folder and the cache folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from cse_core.errors import CseError

if TYPE_CHECKING:
    from cse_cli.plugins.installed import Installed

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


def known_set(name: str, plugins: Installed, where: str) -> str:
    """Return the file of a suite's set in the data folder; any other name as it is.

    Files, installed data sets and data sets of the hub go before a set of this name.

    Raises:
        CseError: If a suite has such a set, and it is not in the data folder; ``where`` is the
            flag.
    """
    from cse_core.registry.names import ending_of

    is_file = "/" in name or Path(name).exists() or ending_of(name, plugins.registry)
    if is_file or name in plugins.datasets:
        return name
    folder, _ = data_folder()
    for suite, spec in plugins.suites.items() if "." in name else ():
        files = plugins.locate(suite, folder).files if spec.dev else {}
        if name in files and (path := files[name]) is not None:
            return str(path.absolute())
        if name in files:
            bring = f"`cse data fetch {suite}` brings it" if spec.sources else "put it there"
            raise CseError(
                f"this set of suite {suite} is not in {folder}",
                where=where,
                value=name,
                hint=f"{bring}; {DATA_VARIABLE} names another folder",
            )
    return name
