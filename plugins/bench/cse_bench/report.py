"""What a measurement of training found: medians over rounds, with their range."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from cse_bench.memory import Peak
from cse_core.recipes.composition import Composition


@dataclass(frozen=True)
class Spread:
    """A number that was measured in several rounds.

    Attributes:
        median: Over the rounds.
        low: The least.
        high: The most.
    """

    median: float
    low: float
    high: float

    @staticmethod
    def of(values: Sequence[float]) -> Spread:
        """Return the spread of some values, one a round."""
        return Spread(statistics.median(values), min(values), max(values))


@dataclass(frozen=True)
class TimedRound:
    """The steps of a round in one number format, together.

    Attributes:
        seconds: Of all of them.
        sentences: Of all of them.
        tokens: Real tokens of all of them.
        floor: Seconds of the floor for one token; None where the encoder has no linear layer.
        own_floor: The same with the last layer only for the tokens that it was run for; None where
            it was run for all.
    """

    seconds: float
    steps: int
    sentences: int
    tokens: int
    floor: float | None
    own_floor: float | None


@dataclass(frozen=True)
class MeasuredPrecision:
    """What was measured in one number format.

    Attributes:
        name: ``fp32`` or ``bf16``.
        sentences: Sentences of the batch a second.
        tokens: Real tokens of all views a second.
        seconds: Seconds of a step.
        floor: Seconds of the matrix products of the encoder's linear layers for as many tokens;
            None where the encoder has no such layer.
        share: Floor over step.
        own_share: The same with the last layer only for the tokens that it was run for; None where
            it was run for all.
        peak: Most memory.
        where: Share of each category in the time of a step, together 1.
    """

    name: str
    sentences: Spread
    tokens: Spread
    seconds: Spread
    floor: Spread | None
    share: Spread | None
    own_share: Spread | None
    peak: Peak
    where: dict[str, float]

    @staticmethod
    def of(
        name: str, rounds: Sequence[TimedRound], peak: Peak, where: dict[str, float]
    ) -> MeasuredPrecision:
        """Return what several rounds in one number format found."""
        floors = [(timed.floor, timed) for timed in rounds if timed.floor is not None]
        own = [(timed.own_floor, timed) for timed in rounds if timed.own_floor is not None]
        return MeasuredPrecision(
            name=name,
            sentences=Spread.of([timed.sentences / timed.seconds for timed in rounds]),
            tokens=Spread.of([timed.tokens / timed.seconds for timed in rounds]),
            seconds=Spread.of([timed.seconds / timed.steps for timed in rounds]),
            floor=_spread([a_token * timed.tokens / timed.steps for a_token, timed in floors]),
            share=_spread([a_token * timed.tokens / timed.seconds for a_token, timed in floors]),
            own_share=_spread([a_token * timed.tokens / timed.seconds for a_token, timed in own]),
            peak=peak,
            where=where,
        )


@dataclass(frozen=True)
class BenchReport:
    """What was measured.

    Attributes:
        processor: Name of the CPU, with the instruction sets that matter.
        device: Where.
        gpu: Name of the GPU, None on a CPU.
        torch: Its version.
        packed: Whether rows went to the encoder without padding.
        tokens: Real tokens of a step, the mean.
        padding_avoided: Share of padding in the same rows padded to the longest of their call.
        gain: How many times faster bf16 was than fp32; None where one of them was not measured.
        auto: What ``train.precision = auto`` takes here, by the hardware.
    """

    composition: Composition
    processor: str
    device: str
    gpu: str | None
    torch: str
    threads: int
    rows: int
    batch_size: int
    packed: bool
    tokens: float
    padding_avoided: float
    rounds: int
    steps: int
    precisions: tuple[MeasuredPrecision, ...]
    gain: Spread | None
    auto: str


def _spread(values: Sequence[float]) -> Spread | None:
    return Spread.of(values) if values else None
