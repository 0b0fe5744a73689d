"""What watches a training run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


class Reporter:
    """Called while a run trains; this one does nothing. The command line draws progress bars.

    Two methods answer: :meth:`measure` adds numbers to a line of metrics, :meth:`check` finds what
    looks wrong in it. If a plugin's reporter (``train.report``) raises, a warning names it, it is
    not called again, and training continues. With several processes only the first has reporters.
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

    def measure(self, anchors: Tensor) -> Mapping[str, float]:
        """Compute numbers for a line of ``metrics.jsonl`` from ``[A, D]`` vectors of a batch.

        They are those of training, with dropout and heads; none by default.
        """
        return {}

    def line(self, line: Mapping[str, float]) -> None:
        """Called after a line of ``metrics.jsonl`` is written."""

    def check(self, line: Mapping[str, float], sizes: Mapping[str, int]) -> Sequence[str]:
        """Find what looks wrong in a line of metrics; each text is shown as a warning.

        ``sizes`` counts the sentences of each dev set, whose scores begin with its name; without
        any, from the first interval of evaluations on, those of the ``batch``.
        """
        return ()

    def scoring(self, names: Sequence[str]) -> None:
        """Called before dev sets are scored."""

    def scores(self, step: int, scores: Mapping[str, float], best: bool) -> None:
        """Called with the scores of an evaluation; step 0 is before training."""

    def progress(self, done: int, total: int, what: str) -> None:
        """Called with the progress of a part between rounds."""

    def end(self) -> None:
        """Called when a round is over."""

    def finish(self, folder: Path, result: Mapping[str, Any]) -> None:
        """Called when the model is saved, before ``result.json`` marks the run as finished."""
