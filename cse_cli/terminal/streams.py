"""What stdout and stderr may turn out to be: closed, full, without a reader, short of letters."""

from __future__ import annotations

import errno
import io
import os
import select
import sys
from typing import Any


class OutputLost(Exception):
    """Nobody takes what is written to stdout.

    Attributes:
        unread: Whether its reader has gone or it was never open, which needs no fix where
            the result lies elsewhere.
    """

    def __init__(self, error: OSError) -> None:
        super().__init__(error.strerror or str(error))
        self.unread = error.errno in (errno.EPIPE, errno.EBADF)
        self.broken_pipe = error.errno == errno.EPIPE


class _Stream(io.RawIOBase):
    """A stream that fails once, or never, and from then on takes everything."""

    def __init__(self, number: int, *, forgiving: bool) -> None:
        self._number, self._forgiving = number, forgiving
        self.lost: OSError | None = None
        self._told = False
        try:
            os.fstat(number)
        except OSError as error:
            self._lose(error)

    def _lose(self, error: OSError) -> None:
        """Let nothing else have the number, which would be written to."""
        self.lost = error
        nowhere = os.open(os.devnull, os.O_RDWR)
        if nowhere != self._number:
            os.dup2(nowhere, self._number)
            os.close(nowhere)

    def writable(self) -> bool:
        """Return that it can be written to."""
        return True

    def fileno(self) -> int:
        """Return its number."""
        return self._number

    def isatty(self) -> bool:
        """Return whether it is a terminal."""
        return os.isatty(self._number)

    def write(self, data: Any) -> int:
        """Write, or raise ``OutputLost`` the first time that it cannot, unless it forgives."""
        if self.lost is None:
            try:
                return os.write(self._number, data)
            except BlockingIOError:
                select.select([], [self._number], [])
                return 0 if not len(data) else self.write(data)
            except OSError as error:
                self._lose(error)
        if self.lost is not None and not (self._forgiving or self._told):
            self._told = True
            raise OutputLost(self.lost)
        return len(data)


def repair_streams() -> None:
    """Replace stdin, stdout and stderr by what cannot break a command.

    Messages that nobody takes are dropped; a result that nobody takes raises ``OutputLost``. What
    an encoding lacks is escaped by ``console.clean_streams``.
    """
    if _Stream(0, forgiving=True).lost is not None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    for number, name in ((1, "stdout"), (2, "stderr")):
        before = getattr(sys, name)
        raw = _Stream(number, forgiving=number == 2)
        repaired = io.TextIOWrapper(
            io.BufferedWriter(raw),
            encoding=getattr(before, "encoding", None) or "utf-8",
            line_buffering=number == 2 or raw.isatty(),
        )
        if before is not None:
            before.flush()
        setattr(sys, name, repaired)
