"""What a training tells those who hear of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


class Reporter:
    """Hears of a training; this one does nothing. The command line draws progress bars.

    Whatever a reporter of a plugin (``train.report``) raises stops no training: a warning names it,
    and it hears nothing more. Of several processes the first alone has such reporters.
    """

    def start(self, folder: Path, settings: Mapping[str, Any]) -> None:
        """Hear that a run begins or goes on: its folder, and what ``run.toml`` in it holds."""

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

    def scoring(self, names: Sequence[str]) -> None:
        """Hear that dev sets are being scored."""

    def scores(self, step: int, scores: Mapping[str, float], best: bool) -> None:
        """Hear the scores of an evaluation."""

    def progress(self, done: int, total: int, what: str) -> None:
        """Hear how far a part is between rounds."""

    def end(self) -> None:
        """Hear that the round is over."""
