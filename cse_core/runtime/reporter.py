"""What a training tells those who hear of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any


class Reporter:
    """Hears of a training; this one does nothing. The command line draws progress bars.

    Whatever a reporter of a plugin (``train.report``) raises stops no training: a warning names it,
    and it hears nothing more. Of several processes the first alone has such reporters.
    """

    def start(self, folder: Path, settings: Mapping[str, Any]) -> None:
        """Hear that a run begins or goes on.

        Args:
            folder: The run's folder, which is there; that of a run that goes on has its
                ``metrics.jsonl``.
            settings: What ``run.toml`` in it holds, by table.
        """

    def message(self, text: str) -> None:
        """Hear a line that a user should read."""

    def warning(self, text: str) -> None:
        """Hear of something to look at."""

    def begin(self, round_number: int, steps: int, done: int) -> None:
        """Hear that a round of so many steps begins after ``done`` of them."""

    def step(self, step: int) -> None:
        """Hear that a step is done."""

    def line(self, line: Mapping[str, float]) -> None:
        """Hear a line of ``metrics.jsonl``, after it is written."""

    def scores(self, step: int, scores: Mapping[str, float], best: bool) -> None:
        """Hear the scores of an evaluation."""

    def progress(self, done: int, total: int, what: str) -> None:
        """Hear how far a part is between rounds."""

    def end(self) -> None:
        """Hear that the round is over."""


class Reporters(Reporter):
    """One reporter, and others beside it that may fail.

    Args:
        own: The reporter of the caller; what it raises is raised.
        makers: Make the others, by name, when the run starts: they hear nothing before.
    """

    def __init__(self, own: Reporter, makers: Mapping[str, Callable[[], Reporter]]) -> None:
        self._own = own
        self._makers = dict(makers)
        self._others: dict[str, Reporter] = {}

    def start(self, folder: Path, settings: Mapping[str, Any]) -> None:
        """Make the others and tell all."""
        for name, make in self._makers.items():
            self._guarded(name, partial(self._add, name, make))
        self._tell("start", folder, settings)

    def message(self, text: str) -> None:
        """Tell all."""
        self._tell("message", text)

    def warning(self, text: str) -> None:
        """Tell all."""
        self._tell("warning", text)

    def begin(self, round_number: int, steps: int, done: int) -> None:
        """Tell all."""
        self._tell("begin", round_number, steps, done)

    def step(self, step: int) -> None:
        """Tell all."""
        self._tell("step", step)

    def line(self, line: Mapping[str, float]) -> None:
        """Tell all."""
        self._tell("line", line)

    def scores(self, step: int, scores: Mapping[str, float], best: bool) -> None:
        """Tell all."""
        self._tell("scores", step, scores, best)

    def progress(self, done: int, total: int, what: str) -> None:
        """Tell all."""
        self._tell("progress", done, total, what)

    def end(self) -> None:
        """Tell all."""
        self._tell("end")

    def _tell(self, method: str, *values: Any) -> None:
        getattr(self._own, method)(*values)
        for name, other in list(self._others.items()):
            self._guarded(name, partial(getattr(other, method), *values))

    def _add(self, name: str, make: Callable[[], Reporter]) -> None:
        self._others[name] = make()

    def _guarded(self, name: str, call: Callable[[], Any]) -> None:
        try:
            call()
        except Exception as error:
            self._others.pop(name, None)
            told = " ".join(f"{type(error).__name__}: {error}".split())
            self._own.warning(f"reporter {name} failed and hears nothing more: {told}")
