"""The folder of caches, and files in it that nobody else can have put there."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import IO


def cache_folder() -> Path | None:
    """Return the folder, there or not: the user's of this system, or what ``CSE_CACHE`` names.

    None where nothing is to be kept: ``CSE_CACHE`` is empty or ``off``.
    """
    named = os.environ.get("CSE_CACHE")
    if named is None:
        import platformdirs

        return Path(platformdirs.user_cache_dir("cse"))
    if named.strip().lower() in ("", "off"):
        return None
    return Path(os.path.expanduser(named))


def private_folder(path: Path) -> None:
    """Make a folder that nobody else may look into.

    Raises:
        OSError: If it cannot be made, or is a link or another user's.
    """
    for missing in reversed([each for each in (path, *path.parents) if not each.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)
    _check_own(path.lstat(), path)
    path.chmod(0o700)


def open_own(path: Path) -> IO[bytes]:
    """Open a file to read that no other user can have put there.

    Raises:
        OSError: If it cannot be read, or is a link or another user's.
    """
    _check_own(path.lstat(), path)
    return path.open("rb")


def _check_own(found: os.stat_result, path: Path) -> None:
    if stat.S_ISLNK(found.st_mode) or found.st_uid != getattr(os, "geteuid", lambda: 0)():
        raise OSError(errno.EPERM, "it is a link, or another user's", str(path))
