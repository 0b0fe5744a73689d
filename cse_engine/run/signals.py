"""Asking a run to stop: the step is finished and a checkpoint written first."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

MIN_SIGNAL_SECONDS = 1.0
"""Seconds after the first signal in which a second one is taken for the same."""


class Stopped(Exception):
    """A signal asked the run to stop; a checkpoint was written in its ``folder``."""

    folder: Path | None = None

    def __init__(self, step: int) -> None:
        super().__init__(f"stopped after step {step}")
        self.step = step


class StopSignals:
    """Notes SIGINT, SIGTERM and SIGHUP and calls ``heard`` at the first; a later SIGINT interrupts.

    A launcher sends its processes once more what they have had already, and must not end the
    writing of a checkpoint: only SIGINT ever interrupts, and not within a second. A SIGHUP that is
    ignored, as ``nohup`` has it, stays so.
    """

    def __init__(self, heard: Callable[[], None]) -> None:
        self.asked, self._heard, self._since = False, heard, 0.0
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> StopSignals:
        """Begin to listen, where this is the main thread."""
        try:
            for wanted in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                if wanted != signal.SIGHUP or signal.getsignal(wanted) is not signal.SIG_IGN:
                    self._before[wanted] = signal.signal(wanted, self._hear)
        except ValueError:
            pass
        return self

    def __exit__(self, *_: object) -> None:
        """Put the handlers back that were there before."""
        for wanted, handler in self._before.items():
            signal.signal(wanted, handler)

    def _hear(self, number: int, frame: object) -> None:
        if not self.asked:
            self.asked, self._since = True, time.monotonic()
            self._heard()
        elif number == signal.SIGINT and time.monotonic() - self._since > MIN_SIGNAL_SECONDS:
            before = self._before[signal.SIGINT]
            interrupt = before if callable(before) else signal.default_int_handler
            interrupt(number, frame)  # which raises
