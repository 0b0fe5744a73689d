"""Callbacks of a training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


class Reporter:
    """Called while a run trains; this one does nothing. The command line draws progress bars.

    If a plugin's reporter (``train.report``) raises, a warning names it, it is not called again,
    and training continues. With several processes only the first has reporters.
    """

    def start(self, folder: Path, settings: Mapping[str, Any]) -> None:
        """Called when a run starts or resumes, with its folder and the content of ``run.toml``."""

    def message(self, text: str) -> None:
        """Show a message to the user."""

    def warning(self, text: str) -> None:
        """Show a warning to the user."""

    def begin(self, round_number: int, steps: int, done: int) -> None:
        """Called when a round of ``steps`` steps starts, or resumes after ``done`` of them."""

    def step(self, step: int) -> None:
        """Called after each step."""

    def line(self, line: Mapping[str, float]) -> None:
        """Called after a line of ``metrics.jsonl`` is written."""

    def scoring(self, names: Sequence[str]) -> None:
        """Called before dev sets are scored."""

    def scores(self, step: int, scores: Mapping[str, float], best: bool) -> None:
        """Called with the scores of an evaluation; step 0 is before training."""

    def progress(self, done: int, total: int, what: str) -> None:
        """Called with the progress of a part between rounds."""

    def end(self) -> None:
        """Called when a round is over."""
