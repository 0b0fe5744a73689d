"""Files and folders that are there complete or not at all, and the folder of caches."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cse_core.errors import CseError


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Give a folder beside ``path`` to write to, and rename it to ``path`` when all is written.

    What was at ``path`` before is replaced; on an error it stays and the new folder is removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
    try:
        os.chmod(beside, 0o755)
        yield beside
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
def whole_file(path: Path) -> Iterator[Path]:
    """Give a file beside ``path`` to write, and rename it to ``path`` when all is written."""
    own = f"{os.getpid()}-{threading.get_ident()}"  # others may write the same file
    beside = path.with_name(f".{path.name}-{own}.part")
    try:
        yield beside
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def write_whole(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    with whole_file(path) as beside:
        beside.write_text(text, encoding="utf-8")


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
