"""Files and folders that are there complete or not at all, and the folder of caches.

Nothing is written through a link. What is written has the permissions that the umask leaves.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from cse_core.errors import CseError

_MOST_TEXT = 2**28


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Give a folder beside ``path`` to write to, and rename it to ``path`` when all is written.

    What was at ``path`` before is replaced; on an error it stays and the new folder is removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = _name_beside(path)
    beside.mkdir()
    try:
        yield beside
        mode = beside.stat().st_mode & 0o666
        for file in beside.rglob("*"):  # some libraries write files that nobody else may read
            if file.is_file():
                file.chmod(mode)
        old = None
        if path.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{path.name}-old-", dir=path.parent))
            os.replace(path, old / path.name)
        os.replace(beside, path)
        if old is not None:
            shutil.rmtree(old, ignore_errors=True)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise


@contextmanager
def whole_file(path: Path, *, private: bool = False, keep: bool = True) -> Iterator[Path]:
    """Give a new file beside ``path`` to write, and rename it to ``path`` when all is written.

    Args:
        path: What is there is replaced.
        private: Whether nobody else may read it.
        keep: False only tries whether it can be written.

    Raises:
        OSError: If it cannot be written, or is a link or no ordinary file.
    """
    if path.is_symlink():
        raise OSError(errno.ELOOP, "it is a link, and nothing is written through one", str(path))
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is not an ordinary file", str(path))
    beside = _name_beside(path)
    os.close(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o666))
    try:
        yield beside
        if keep:
            os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def _name_beside(path: Path) -> Path:
    """Return a name beside a path that nobody can foresee, and so plant a link at."""
    return path.with_name(f".{path.name[:40]}-{secrets.token_hex(4)}")


def write_whole(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    with whole_file(path) as beside:
        beside.write_text(text, encoding="utf-8")


def exists(path: Path) -> bool:
    """Tell whether there is something; a name that no file can have is nothing."""
    try:
        return path.exists()
    except OSError:
        return False


def file_text(path: Path) -> str:
    """Return a file's text; an ``OSError`` if it is a pipe or a device, or too large for one."""
    if path.exists() and not path.is_file():
        raise OSError("it is no file")
    if path.stat().st_size > _MOST_TEXT:
        raise OSError(f"it has more than {_MOST_TEXT:,} bytes")
    return path.read_text(encoding="utf-8")


def writable_folder(path: Path, where: str) -> Path:
    """Make a folder, or refuse with one line.

    Raises:
        CseError: If it cannot be made or written to.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        tempfile.NamedTemporaryFile(dir=path, prefix=".writable-").close()
        return path
    except FileExistsError:
        what, hint = "is a file, not a folder", "name another folder"
    except OSError as error:
        what = f"cannot be written to ({error.strerror})"
        hint = "name a folder that you may write to"
    raise CseError(what, where=where, value=str(path), hint=hint)


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
    file = open(os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)), "rb")
    try:
        _check_own(os.fstat(file.fileno()), path)
    except OSError:
        file.close()
        raise
    return file


def _check_own(found: os.stat_result, path: Path) -> None:
    if stat.S_ISLNK(found.st_mode) or found.st_uid != getattr(os, "geteuid", lambda: 0)():
        raise OSError(errno.EPERM, "it is a link, or another user's", str(path))
