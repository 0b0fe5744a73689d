"""How long a run will take, by what `cse bench` measured here; without torch."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cse_core.bench.kept import Measurement, faster, of_encoder
from cse_core.bench.machine import expected_place
from cse_core.bench.work import has_rounds, mean_lengths, work_of
from cse_core.composition import Composition

if TYPE_CHECKING:
    from cse_core.data import Corpus
    from cse_core.registry import Registry

FARTHEST = 2.0
"""Work that is so many times more or less than the measured one is not told from it."""
_SAME = 1.05


@dataclass(frozen=True)
class ExpectedTime:
    """How long the steps of a run will take.

    Attributes:
        seconds: Of all steps; scores on dev sets and checkpoints not counted.
        steps: How many.
        sentences_per_second: Sentences of the batch, as a run's metrics count them.
        precision: Number format.
        scaled: How much more work a step is than the measured one was; 1 is the same.
        measured: What it was told from.
    """

    seconds: float
    steps: int
    sentences_per_second: float
    precision: str
    scaled: float
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
        if not 1 / _SAME < self.scaled < _SAME:
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
    if corpus is None or steps is None or has_rounds(composition):
        return None
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        return None
    place = expected_place(train.device, train.threads)
    if place is None:
        return None
    kept = of_encoder(place, facts.hidden, facts.layers)
    chosen = _precision(train.precision, kept)
    found = [
        each
        for each in kept
        if chosen in each.seconds
        and each.work is not None
        and each.family == facts.family
        and (each.attention == "padded") == (composition.model.attention == "padded")
    ]
    if chosen is None or not found:
        return None
    lengths = mean_lengths(composition, corpus, registry)
    if lengths is None:
        return None
    work = work_of(composition, lengths)
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
    ratio, measured = min(reversed(near), key=lambda pair: abs(math.log(pair[0])))
    seconds = measured.seconds[chosen] * ratio
    rows = min(train.batch_size, len(corpus))
    return ExpectedTime(seconds * steps, steps, rows / seconds, chosen, ratio, measured)


def _precision(wanted: str, kept: list[Measurement]) -> str | None:
    """Return the number format that a run would take."""
    if wanted != "auto":
        return wanted
    gains = [each.gain for each in kept if each.gain is not None]
    if gains:
        return faster(gains[-1])
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
