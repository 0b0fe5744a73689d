"""What a training tells the person who waits for it."""

from __future__ import annotations

from collections.abc import Mapping


class Reporter:
    """Hears of a training; this one says nothing. The command line draws progress bars."""

    def message(self, text: str) -> None:
        """Hear a line that a user should read."""

    def warning(self, text: str) -> None:
        """Hear of something to look at."""

    def begin(self, round_number: int, steps: int, done: int) -> None:
        """Hear that a round of so many steps begins after ``done`` of them."""

    def step(self, step: int) -> None:
        """Hear that a step is done."""

    def line(self, line: Mapping[str, float]) -> None:
        """Hear a line of metrics."""

    def scores(self, step: int, scores: Mapping[str, float], best: bool) -> None:
        """Hear the scores of an evaluation."""

    def progress(self, done: int, total: int, what: str) -> None:
        """Hear how far a part is between rounds."""

    def end(self) -> None:
        """Hear that the round is over."""
