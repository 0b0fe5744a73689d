"""Faults put into a command from inside: a kill at its N-th write, or a disk that is full there.

Everything by which a file or folder below a folder is made, written, renamed or removed counts:
audit events of the interpreter, and the writers that are no Python (safetensors and Arrow).
"""

import errno
import os
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

_EVENTS = ("os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.symlink")


class Fault(BaseModel):
    """What goes wrong, and where.

    Attributes:
        below: Folder whose writes count.
        at: Number of the write, from 1, before which it happens; 0 is never.
        what: ``kill`` ends the process; ``cut`` does so after it cut the file that was being
            written to half; ``full`` lets this write and all after it fail as a full disk does.
        log: File to which a line is written for each write: what, and the path.
    """

    model_config = ConfigDict(extra="forbid")

    below: str
    at: int = 0
    what: Literal["kill", "cut", "full"] = "kill"
    log: str = ""

    def install(self) -> None:
        _Writes(self).watch()


class _Writes:
    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        self.count = 0
        self.last: Path | None = None
        self.busy = False
        self.log = os.open(fault.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND) if fault.log else None

    def watch(self) -> None:
        """Hear of every write from here on."""
        import pyarrow.parquet as parquet
        import safetensors.torch
        import transformers.modeling_utils as transformers

        from cse_engine.run import checkpoint

        save = self.whole(safetensors.torch.save_file, 1)
        checkpoint.save_file = save  # type: ignore[attr-defined]
        transformers.safe_save_file = save  # type: ignore[attr-defined]
        parquet.write_table = self.whole(parquet.write_table, 1)
        sys.addaudithook(self.audit)

    def whole(self, write: Callable[..., Any], place: int) -> Callable[..., Any]:

        def counted(*values: Any, **named: Any) -> Any:
            self.hear("file", Path(values[place]))
            made = write(*values, **named)
            self.last = Path(values[place])
            return made

        return counted

    def audit(self, event: str, values: tuple[Any, ...]) -> None:
        if event == "open":
            path, mode, flags = values
            writing = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) if mode is None or isinstance(
                flags, int) else False  # fmt: skip
            if not isinstance(path, str) or not writing:
                return
            self.hear("open", Path(path))
            self.last = Path(path)
        elif event in _EVENTS and isinstance(values[0], str):
            self.hear(event.removeprefix("os."), Path(values[0]))

    def hear(self, what: str, path: Path) -> None:
        """Count a write that is about to happen."""
        below = Path(os.path.abspath(path)).is_relative_to(self.fault.below)
        if self.busy or not below:
            return
        self.busy = True
        self.count += 1
        if self.log is not None:
            name = os.path.relpath(os.path.abspath(path), self.fault.below)
            os.write(self.log, f"{what} {name}\n".encode())
        try:
            if self.fault.at and self.count >= self.fault.at:
                self.happen(what, path)
        finally:
            self.busy = False

    def happen(self, what: str, path: Path) -> None:
        """Let the fault happen; what is removed needs no room."""
        if self.fault.what == "full":
            if what in ("remove", "rmdir"):
                return
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        if self.fault.what == "cut" and self.last is not None and self.last.is_file():
            os.truncate(self.last, self.last.stat().st_size // 2)
        os.kill(os.getpid(), signal.SIGKILL)


def label(line: str) -> str:
    """Return a line of a log without what is random or a number in it."""
    line = re.sub(r"-[a-z0-9_]{8}(?=/|$)", "-x", line)
    return re.sub(r"\d+", "N", line)
