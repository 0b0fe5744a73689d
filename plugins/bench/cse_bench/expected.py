"""How long a run will take, by what `cse bench` measured here; without torch."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cse_bench.kept import Measurement, measured_gain, of_encoder
from cse_bench.machine import Place, expected_place
from cse_bench.work import fingerprint, mean_lengths, work_of
from cse_core.recipes.composition import Composition
from cse_core.runtime.device import faster

if TYPE_CHECKING:
    from cse_core.data import Corpus
    from cse_core.registry.registry import Registry

FARTHEST = 2.0
"""Work that is so many times more or less than the measured one is not told from it."""
_SAME = 1.05
_OTHER = 1.3
"""What other parts were measured counts as if their work were so many times another."""


@dataclass(frozen=True)
class ExpectedTime:
    """How long the steps of a run will take.

    Attributes:
        seconds: Of all steps; scores on dev sets and checkpoints not counted.
        steps: How many.
        sentences_per_second: Sentences of the batch, as a run's metrics count them.
        precision: Number format.
        scaled: How much more work a step is than the measured one was; 1 is the same.
        same: Whether the same parts were measured in batches of the same size.
        measured: What it was told from.
    """

    seconds: float
    steps: int
    sentences_per_second: float
    precision: str
    scaled: float
    same: bool
    measured: Measurement

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values, for JSON."""
        return {
            "seconds": self.seconds,
            "steps": self.steps,
            "sentences_per_second": self.sentences_per_second,
            "precision": self.precision,
            "scaled": self.scaled,
            "measured": self.measured.date,
        }

    def line(self) -> str:
        """Return it in one line."""
        source = f"measured by cse bench on {self.measured.date}"
        if not (self.same and 1 / _SAME < self.scaled < _SAME):
            what = self.measured.recipe or "the default recipe"
            source = (
                f"reckoned from {what} in batches of {self.measured.batch_size}, "
                f"{source}, with {self.scaled:.2f} times its work a step"
            )
        return (
            f"about {_duration(self.seconds)}: {self.steps:,} steps at "
            f"{_rate(self.sentences_per_second)} sentences/s in {self.precision}, {source}; "
            "dev scores and checkpoints come on top"
        )


def expected_time(
    composition: Composition, corpus: Corpus | None, registry: Registry
) -> ExpectedTime | None:
    """Return how long a run will take where something like it was measured here, else None.

    Processor, device, threads, torch, the encoder's size and the number format are those of the
    measurement. The work of a step is scaled by its tokens and by what is done to each.

    Args:
        composition: The checked recipe.
        corpus: Its rows, None where they were not read.
        registry: Installed encoders.
    """
    train, facts = composition.train, composition.facts
    steps = facts.steps
    if corpus is None or steps is None or composition.in_rounds:
        return None
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        return None
    place = expected_place(train.device, train.threads)
    if place is None:
        return None
    kept = of_encoder(place, composition)
    chosen = _precision(composition, place, kept)
    found = [each for each in kept if chosen in each.seconds and each.work is not None]
    if chosen is None or not found:
        return None
    lengths = mean_lengths(composition, corpus, registry)
    if lengths is None:
        return None
    rows = min(train.batch_size, len(corpus))
    work, parts = work_of(composition, lengths, rows), fingerprint(composition)
    passes = len(composition.passes)
    by_ratio = [(work / each.work, each) for each in found if each.work is not None]
    near = [
        (ratio, each)
        for ratio, each in by_ratio
        # Launching kernels is most of a small step on a GPU, which tokens do not tell.
        if 1 / FARTHEST <= ratio <= FARTHEST and (place.device == "cpu" or each.passes == passes)
    ]
    if not near:
        return None

    def distance(pair: tuple[float, Measurement]) -> float:
        ratio, each = pair
        return abs(math.log(ratio)) + (0.0 if each.parts == parts else math.log(_OTHER))

    ratio, measured = min(reversed(near), key=distance)
    seconds = measured.seconds[chosen] * ratio
    same = (measured.parts, measured.batch_size) == (parts, rows)
    return ExpectedTime(seconds * steps, steps, rows / seconds, chosen, ratio, same, measured)


def _precision(composition: Composition, place: Place, kept: Sequence[Measurement]) -> str | None:
    """Return the number format that a run would take."""
    if composition.train.precision != "auto":
        return composition.train.precision
    gain = measured_gain(place, composition)
    if gain is not None:
        return faster(gain)
    return kept[-1].rule if kept else None


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{max(seconds, 1):.0f} s"
    minutes = round(seconds / 60)
    if minutes < 120:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest:02} min" if hours < 48 else f"{hours / 24:.1f} days"
