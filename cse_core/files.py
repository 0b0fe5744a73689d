"""The files of runs and models by name; files read, and files and folders written whole or not.

Nothing is written through a link. What is written has the permissions that the umask leaves.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import io
import json
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from socket import gethostname
from typing import IO, Any

from safetensors import SafetensorError

from cse_core.errors import CseError

RUN_FILE = "run.toml"
"""What a run writes beside its model; it is a recipe too."""
RESULT, METRICS, EVALUATIONS = "result.json", "metrics.jsonl", "evaluations.jsonl"
FOLDERS = ("model", "rejected", "rounds", "checkpoints")
"""Folders in a run's folder."""
LOCK = ".lock"
"""Names the process that writes into the folder."""
MANIFEST = "cse.json"
"""The file that says how ``cse`` encodes with a saved model, and if it is from the starter."""
MEMBERS = "members"
"""Folder of the further encoders of a saved ensemble."""
HEADS = "heads.safetensors"
"""Weights of a saved model's heads, and of a row pooler or slicer that has any."""
_MAX_TEXT_BYTES = 2**28
SUMS = "checksums.json"
"""SHA-256 of every other file of a whole folder, by its path in it."""
_NOT_SUMMED = "README.md"
"""What no program reads, and people edit."""
_PACKED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_TEMPORARY = re.compile(r"\.(?P<name>.+?)-(?P<old>old-)?[0-9a-f]{8}")
"""Names of files and folders that are being written, or replaced."""


def cache_folder() -> Path | None:
    """Return the folder, there or not: the user's of this system, or what ``CSE_CACHE`` names.

    None where nothing is to be kept: ``CSE_CACHE`` is empty or ``off``.
    """
    named = os.environ.get("CSE_CACHE")
    if named is None:
        import platformdirs

        return Path(platformdirs.user_cache_dir("cse"))
    off = named.strip().lower() in ("", "off")
    return None if off else Path(os.path.expanduser(named))


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Give a folder beside ``path`` to write to, and rename it to ``path`` when all is written.

    What was at ``path`` before is replaced; on an error it stays and the new folder is removed.
    Checksums are written last (:func:`verify_checksums`).

    Raises:
        CseError: If the disk is full, read-only, or the like.
    """
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        beside, old = _name_beside(path), _name_beside(path, "old-")
        beside.mkdir()
        try:
            yield beside
            files = sorted(file for file in beside.rglob("*") if file.is_file())
            mode = beside.stat().st_mode & 0o666
            for file in files:
                file.chmod(mode)  # some libraries write files that nobody else may read
            summed = (file for file in files if file.name != _NOT_SUMMED)
            sums = {file.relative_to(beside).as_posix(): file_sum(file) for file in summed}
            (beside / SUMS).write_text(json.dumps(sums, indent=1) + "\n", encoding="utf-8")
            if path.exists():
                os.replace(path, old)
            os.replace(beside, path)
            shutil.rmtree(old, ignore_errors=True)
        finally:
            shutil.rmtree(beside, ignore_errors=True)


def verify_checksums(folder: Path, *needed: str) -> str | None:
    """Verify the checksums of a folder: return the first fault, None if it is intact.

    Args:
        folder: What :func:`atomic_folder` wrote.
        needed: Files that it must have; a folder without checksums is damaged where there are any.
    """
    if not (folder / SUMS).exists() and not (folder / SUMS).is_symlink():
        return f"it has no {SUMS}" if needed else None
    from pydantic import TypeAdapter

    try:
        sums = TypeAdapter(dict[str, str]).validate_json(file_text(folder / SUMS))
    except (OSError, ValueError):
        return f"{SUMS} is damaged"
    for name in (*needed, *sums):
        if not (folder / name).is_file():
            return f"{name} is missing"
        try:
            if sums.get(name) != file_sum(folder / name):
                return f"{name} is not what was written"
        except OSError as error:
            return f"{name} cannot be read: {error.strerror}"
    return None


def file_sum(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def remove_stale_files(folder: Path) -> None:
    """Remove what killed processes left of files and folders being written beside their places.

    A folder that was being replaced is put back first. Links are not followed. The caller knows
    that no living process writes there.
    """
    for entry in () if folder.is_symlink() or not folder.is_dir() else sorted(folder.iterdir()):
        match = _TEMPORARY.fullmatch(entry.name)
        if match is None:
            continue
        with suppress(OSError):
            if match["old"] and not (folder / match["name"]).exists():
                os.replace(entry, folder / match["name"])
            elif entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()


@contextmanager
def lock_folder(folder: Path, where: str, doing: str) -> Iterator[None]:
    """Keep other processes from writing to a folder until this one leaves the block or ends.

    By ``flock``, which Linux passes on to the servers of network file systems. On one without
    locks, the first process in the lock file that may still run has it.

    Args:
        folder: The folder, which must exist.
        where: The flag that named it, for errors.
        doing: What the other process is doing, for errors: ``training into it``.

    Raises:
        CseError: If another process has the lock, or the lock file cannot be written.
    """
    path, mine = folder / LOCK, f"{os.getpid()} on {gethostname()}"
    owner, hint, locked = "", "", False
    while not (locked or hint):
        with disk_errors(path):
            file = _open_lock(path)
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                file.truncate(0)
            except BlockingIOError:
                hint = "name another folder, or wait until that one has ended"
            except OSError:
                hint = f"if that one has ended, remove {path}"
            owners = file.read(10_000).splitlines()
            owner = next(filter(_may_run, owners), "")
            if not owner and not hint.startswith("name"):
                print(mine, file=file, flush=True)
                os.fsync(file.fileno())
                file.seek(0)
                owner = next(filter(_may_run, file.read(10_000).splitlines()), "")
                hint = "" if owner == mine else hint
            with suppress(FileNotFoundError):  # one that ended has removed it: lock the new one
                locked = not hint and os.path.samestat(os.fstat(file.fileno()), path.lstat())
            if locked:
                try:
                    yield
                finally:
                    with suppress(OSError):
                        path.unlink()
    if hint:
        what = f"another process is {doing}, {owner}"
        raise CseError(what, where=where, value=str(folder), hint=hint)


def _open_lock(path: Path) -> IO[str]:
    """Open a lock file, which is made if it is missing; never a link, pipe or device."""
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
    number = os.open(path, flags, 0o666)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(errno.EINVAL, "it is not an ordinary file", str(path))
    return os.fdopen(number, "r+", encoding="utf-8", errors="replace")


def _may_run(owner: str) -> bool:
    """Check whether a process may still run; one of another machine cannot be seen from here."""
    pid, _, host = owner.partition(" on ")
    if not pid.isdecimal() or host != gethostname():
        return bool(owner.strip())
    try:
        os.kill(int(pid), 0)
    except (OSError, OverflowError) as error:  # it may run as somebody else
        return not isinstance(error, ProcessLookupError | OverflowError)
    return True


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn an error of the disk while a file or folder is written into one line.

    Raises:
        CseError: If it is full or read-only, the file grows too large, and the like.
    """
    try:
        yield
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        if match := re.search(r"os error (\d+)", reason):  # of safetensors
            reason = os.strerror(int(match[1]))
        full = reason in map(os.strerror, (errno.ENOSPC, errno.EDQUOT))
        raise CseError(
            f"cannot be written: {reason}",
            where=str(path),
            hint="make room on its disk" if full else "check what is there and who may write to it",
        ) from None


@contextmanager
def atomic_file(path: Path, *, private: bool = False, keep: bool = True) -> Iterator[Path]:
    """Give a new file beside ``path`` to write, and rename it to ``path`` when all is written.

    Nobody else may read a ``private`` one. Without ``keep`` it is only tried.

    Raises:
        OSError: If it cannot be written, or ``path`` is a link or no ordinary file.
    """
    if path.is_symlink():
        raise OSError(errno.ELOOP, "it is a link, and links are never written through", str(path))
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


def _name_beside(path: Path, kind: str = "") -> Path:
    """Return a name beside a path that nobody can foresee, and so plant a link at."""
    return path.with_name(f".{path.name[:40]}-{kind}{secrets.token_hex(4)}")


def atomic_write(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    with atomic_file(path) as beside:
        beside.write_text(text, encoding="utf-8")


def read_error(name: str, error: Exception) -> CseError:
    """Turn an error of the operating system into one line."""
    if isinstance(error, PermissionError):
        hint = "make it readable: chmod +r FILE"
        return CseError("permission denied", where=name, hint=hint)
    return CseError(f"cannot be read: {getattr(error, 'strerror', None) or error}", where=name)


@contextmanager
def open_bytes(name: str) -> Iterator[IO[bytes]]:
    """Open a file for its uncompressed bytes; what fails while they are read is a ``CseError``."""
    try:
        with open(Path(name).expanduser(), "rb") as raw:
            magic = raw.read(4)
            raw.seek(0)
            if not magic:
                raise CseError("the file is empty", where=name, hint="name a file with texts")
            packed = next((form for mark, form in _PACKED.items() if magic.startswith(mark)), None)
            if packed is None:
                yield raw
            else:
                import pyarrow as pa

                yield io.BufferedReader(pa.CompressedInputStream(raw, packed))
    except OSError as error:
        if error.errno is not None:  # which damages have not
            raise read_error(name, error) from error
        what = f"the compressed file is cut short or damaged ({error})"
        hint = "copy or download it again"
        raise CseError(what, where=name, hint=hint) from error


def file_text(path: Path) -> str:
    """Return a file's text; an ``OSError`` if it is a pipe or a device, or too large for one."""
    if path.exists() and not path.is_file():
        raise OSError("it is not a regular file")
    if path.stat().st_size > _MAX_TEXT_BYTES:
        raise OSError(f"it has more than {_MAX_TEXT_BYTES:,} bytes")
    return path.read_text(encoding="utf-8")


def read_json(path: Path, name: str, *, kind: type) -> Any:
    """Read a JSON file of a model, a ``kind`` of value; ``name`` is the model's, for errors.

    Raises:
        CseError: If it cannot be read, or holds another kind.
    """
    try:
        content = json.loads(file_text(path))
    except (OSError, ValueError, RecursionError) as error:
        reason = str(error) if isinstance(error, OSError) else "is not valid JSON"
        hint = "save the model again"
        raise CseError(f"{path.name} {reason}", where="model.name", value=name, hint=hint) from None
    if not isinstance(content, kind):
        raise CseError(f"{path.name} is malformed", where="model.name", value=name)
    return content


def writable_folder(path: Path, where: str) -> Path:
    """Make a folder, or refuse with one line.

    Raises:
        CseError: If it cannot be made or written to.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        with atomic_file(path / "writable", keep=False):
            return path
    except OSError as error:
        what, hint = f"cannot be written to ({error.strerror})", "name another folder"
        raise CseError(what, where=where, value=str(path), hint=hint) from None
