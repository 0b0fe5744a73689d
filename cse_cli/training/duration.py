"""How long a run takes on a processor: its arithmetic over the speed of a product of matrices."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cse_engine.compose.composition import Composition

if TYPE_CHECKING:
    from cse_cli.texts.corpus_facts import Lengths
    from cse_core.suites import DevSet

SHARE = 0.5
"""Of the speed of one large product that an encoder reaches, about."""


@dataclass(frozen=True)
class Duration:
    """How long a run takes, about.

    Attributes:
        training: Seconds of the steps.
        scoring: Seconds of the dev sets.
    """

    training: float
    scoring: float

    def line(self) -> str:
        """Return it as a line for people."""
        total = self.training + self.scoring
        if total < 90:
            return "time: under two minutes on this processor"
        shown = f"{total / 60:,.0f} minutes" if total < 7200 else f"{total / 3600:,.1f} hours"
        share = f", {100 * self.scoring / total:.0f} % of it for the dev sets"
        return f"time: about {shown} on this processor{share if self.scoring else ''}"


def duration(
    composition: Composition, lengths: Lengths | None, sets: Mapping[str, DevSet], times: int | None
) -> Duration | None:
    """Estimate the duration of a run whose dev sets are scored so many times.

    None on a GPU, or where its size is not known.
    """
    facts, train = composition.facts, composition.train
    on_gpu = train.device not in ("auto", "cpu") or Path("/dev/nvidiactl").exists()
    if lengths is None or None in (facts.hidden, facts.layers, facts.steps) or on_gpu:
        return None
    assert facts.hidden is not None and facts.layers is not None and facts.steps is not None
    # Twelve square matrices a layer, and a product and a sum for each number in them.
    forward = 24 * facts.layers * facts.hidden**2 * lengths.tokens
    passes = sum(len(item.views) * (3 if item.gradient else 1) for item in composition.passes)
    speed = SHARE * _speed(facts.hidden, train.threads)
    texts = sum(dev.size for dev in sets.values()) * (times or 0)
    steps = facts.steps * train.batch_size * passes
    return Duration(forward * steps / speed, forward * texts / speed)


def _speed(hidden: int, threads: int | None) -> float:
    """Measure the operations per second of a matrix product."""
    import numpy as np

    rows, matrix = np.ones((512, hidden), np.float32), np.ones((hidden, 4 * hidden), np.float32)
    best = float("inf")
    for _ in range(4):
        began = time.perf_counter()
        rows @ matrix
        best = min(best, time.perf_counter() - began)
    return 2 * rows.size * 4 * hidden / best
