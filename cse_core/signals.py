"""Asking a run to stop: the step is finished and a checkpoint written first."""

from __future__ import annotations

import signal
from typing import Any


class Stopped(Exception):
    """A signal asked the run to stop; a checkpoint was written."""

    def __init__(self, step: int) -> None:
        super().__init__(f"stopped after step {step}")
        self.step = step


class StopSignals:
    """Notes SIGINT and SIGTERM while it is entered; the second one interrupts at once.

    Attributes:
        asked: Whether one has come.
    """

    def __init__(self) -> None:
        self.asked = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> StopSignals:
        """Begin to listen, where this is the main thread."""
        try:
            for wanted in (signal.SIGINT, signal.SIGTERM):
                self._before[wanted] = signal.signal(wanted, self._hear)
        except ValueError:
            pass
        return self

    def __exit__(self, *_: object) -> None:
        """Put the handlers back that were there before."""
        for wanted, handler in self._before.items():
            signal.signal(wanted, handler)
        self._before = {}

    def _hear(self, number: int, frame: object) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
