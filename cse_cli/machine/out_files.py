"""Files and folders that a command writes; none of them may be one that it reads."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from shlex import quote

from cse_core.errors import CseError

typed: ContextVar[tuple[str, ...]] = ContextVar("typed", default=())
"""The command line."""
_APART = re.compile(r"""[=:,?\[\]"']""")
"""Between a flag or a role and a file, several files, or a file and how it is read."""
_OF_MODELS = frozenset({".json", ".safetensors", ".bin", ".model", ".txt"})


@contextmanager
def out_file(
    path: Path, where: str = "--out", *, keep: bool = True, inputs: Iterable[object] = ()
) -> Iterator[Path]:
    """Give a file beside ``path`` to write, and rename it to ``path`` when all is written.

    Args:
        path: The file; replaced if it is there.
        where: The flag that named it, for errors.
        keep: Without it, writing is only tried: see :func:`check_out_file`.
        inputs: Files that are read and stand nowhere in the command line.

    Raises:
        CseError: If it cannot be written, or the same command reads it.
    """
    from cse_core.files import atomic_file

    if path.is_dir():
        raise CseError("is a folder", where=where, value=str(path), hint="name a file")
    if not os.path.lexists(path.parent):
        hint = f"make it: mkdir -p {quote(str(path.parent))}"
        raise CseError("its folder does not exist", where=where, value=str(path), hint=hint)
    _check_not_read(path, where, inputs)
    try:
        with atomic_file(path, keep=keep) as made:
            yield made
    except OSError as error:
        raise CseError(
            f"cannot be written: {error.strerror or error}",
            where=where,
            value=str(path),
            hint="name a file in a folder that you may write to",
        ) from None


def check_out_file(path: Path, where: str = "--out", inputs: Iterable[object] = ()) -> None:
    """Refuse a file that cannot be written, before the work for it.

    Raises:
        CseError: As :func:`out_file`.
    """
    with out_file(path, where, keep=False, inputs=inputs):
        pass


def _check_not_read(path: Path, where: str, inputs: Iterable[object]) -> None:
    """Refuse to write over what a command reads or writes too, or what belongs to others."""
    what = ""
    if path.is_file() and _belongs(path.resolve()):
        what = "belongs to a run, a model or fetched data"
    elif any(_names(str(name), path) for name in inputs):
        what = "is read by this command"
    elif sum(_names(name, path) for name in typed.get()) > 1:
        what = "is named twice in this command"
    if what:
        hint = "name another file"
        raise CseError(f"{what} and would be replaced", where=where, value=str(path), hint=hint)


def _names(text: str, path: Path) -> bool:
    """Tell whether a word of a command line names a file: whole, or behind a flag."""
    for name in {text, text[2:] if text[:1] == "-" else text, *_APART.split(text)}:
        full = os.path.expanduser(name)
        with suppress(OSError, ValueError):  # any text may stand there
            if os.path.abspath(full) == os.path.abspath(path) or os.path.samefile(full, path):
                return True
    return False


def _belongs(path: Path) -> bool:
    """Tell whether a file is one of a run, of a model, or of what ``cse data fetch`` fetched."""
    from cse_core.files import EVALUATIONS, FOLDERS, METRICS, RESULT, RUN_FILE

    for folder in path.parents[:4]:
        first = path.relative_to(folder).parts[0]
        if first in (RUN_FILE, RESULT, METRICS, EVALUATIONS, *FOLDERS):
            if (folder / RUN_FILE).is_file():
                return True
    beside = path.parent
    return (path.suffix in _OF_MODELS and (beside / "config.json").is_file()) or (
        path.suffix == ".gz" and (beside / "fetched.json").is_file()
    )


def check_text(text: str, where: str | None = None) -> None:
    """Refuse a name that is not UTF-8: safetensors and tokenizers cannot open such files."""
    try:
        text.encode()
    except UnicodeEncodeError:
        what, hint = "contains bytes that are not text", "rename it in UTF-8"
        raise CseError(what, where=where, value=text, hint=hint) from None


def check_out_folder(path: Path, where: str = "--out") -> None:
    """Refuse a folder that could not be made or written to; nothing is made.

    Raises:
        CseError: If a file is in its way, its place may not be written to, or its absolute path is
            not UTF-8.
    """
    check_text(os.path.abspath(path), where)
    above = path
    while not above.exists() and above != above.parent:
        above = above.parent
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        what = "is a file" if not above.is_dir() else "may not be written to"
        hint = "name a folder that can be made"
        raise CseError(f"{above} {what}", where=where, value=str(path), hint=hint)
