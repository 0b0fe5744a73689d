"""What a measurement of training found, and how it is printed."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from cse import Composition
from cse_cli.api import echo, plain_table, say_table

GAIN = 1.1
"""How many times as fast as fp32 bf16 has to be to be worth its rounding."""


@dataclass(frozen=True)
class Spread:
    """A number that was measured in several rounds: its median, least and most."""

    median: float
    low: float
    high: float

    @staticmethod
    def of(values: Sequence[float]) -> Spread:
        """Return the spread of some values, one a round."""
        return Spread(statistics.median(values), min(values), max(values))

    def format(self, form: str, scale: float = 1.0) -> str:
        """Return ``12.3 [11.9-12.8]``, the median alone where there is one round."""
        middle, low, high = (
            format(value * scale, form) for value in (self.median, self.low, self.high)
        )
        return middle if self.low == self.high else f"{middle} [{low}-{high}]"


@dataclass(frozen=True)
class MeasuredPrecision:
    """What was measured in one precision.

    Attributes:
        name: ``fp32`` or ``bf16``.
        sentences_per_second: Sentences of the batch.
        tokens_per_second: Real tokens of all views.
        peak_memory: Most bytes in use: of tensors on a GPU, of the whole process on a CPU; None
            where the system does not say.
        where: Share of each category in the time of a step, together 1.
    """

    name: str
    sentences_per_second: Spread
    tokens_per_second: Spread
    seconds_per_step: Spread
    peak_memory: int | None
    where: dict[str, float]


@dataclass(frozen=True)
class BenchReport:
    """What was measured.

    Attributes:
        processor: Name of the CPU, with the instruction sets that matter.
        gpu: Name of the GPU, None on a CPU.
        tokens_per_step: Real tokens, the mean.
        gain: How many times faster bf16 was than fp32; None where one of them was not measured.
        auto: What ``train.precision = auto`` takes here, by the hardware.
        asked: ``train.precision`` of the recipe, or what a part of it needs.
        memory_advice: What to type where the system takes much of the time for memory; else None.
    """

    composition: Composition
    processor: str
    device: str
    gpu: str | None
    torch: str
    threads: int
    rows: int
    batch_size: int
    tokens_per_step: float
    rounds: int
    steps: int
    precisions: tuple[MeasuredPrecision, ...]
    gain: Spread | None
    auto: str
    asked: str = "auto"
    memory_advice: str | None = None

    def show(self) -> None:
        """Print it on stdout."""
        from cse_bench.where import CATEGORIES, PRODUCTS

        composition, measured = self.composition, self.precisions
        gpu = "" if self.gpu is None else f"{self.gpu}, "
        threads = f"{self.threads} thread{'' if self.threads == 1 else 's'}"
        echo(f"machine: {gpu}{self.processor}; {threads}; torch {self.torch}")
        echo(
            f"trained: recipe {composition.recipe or 'default'}, model {composition.model.name}, "
            f"{self.rows:,} rows of {', '.join(composition.data.path)}, batches of "
            f"{self.batch_size}, {self.tokens_per_step:,.0f} real tokens a step"
        )
        table = plain_table("", ("", *(item.name for item in measured)))
        speed = [item.sentences_per_second.format(",.1f") for item in measured]
        table.add_row("sentences/s", *speed)
        speed = [item.tokens_per_second.format(",.0f") for item in measured]
        table.add_row("real tokens/s", *speed)
        times = [item.seconds_per_step.format(",.1f", 1000) for item in measured]
        table.add_row("ms a step", *times)
        peaks = [item.peak_memory for item in measured]
        table.add_row("peak memory", *(f"{n / 2**20:,.0f} MB" if n else "-" for n in peaks))
        table.caption = "the timed steps of one round"
        if self.rounds > 1:
            table.caption = f"medians of {self.rounds} rounds, the least and the most in brackets"
        say_table(table)
        table = plain_table("", ("where the time of a step goes", *(e.name for e in measured)))
        for category in CATEGORIES:
            parts = [item.where.get(category, 0.0) for item in measured]
            if any(parts):
                table.add_row(category, *(f"{part:.1%}" for part in parts))
        say_table(table)
        for item in measured:
            share = item.where.get(PRODUCTS, 0.0)
            echo(f"limit in {item.name}: all but its matrix products is {1 - share:.0%} of a step")
        for advice in (self.advice(), self.memory_advice):
            if advice is not None:
                echo(advice)

    def advice(self) -> str | None:
        """Recommend a precision and what to type for it; None where only one was measured."""
        if self.gain is None:
            return None
        faster = "bf16" if self.gain.median >= GAIN else "fp32"
        measured = f"bf16 was {self.gain.format('.2f')} times as fast as fp32 here"
        if self.asked not in ("auto", faster):
            return f"{measured}; the recipe or one of its parts asks for {self.asked}"
        if faster == self.auto:
            return f"{measured}: train.precision = auto takes {faster}"
        return f"{measured}: add --train.precision {faster}, auto takes {self.auto}"

    def to_json(self) -> dict[str, Any]:
        """Return it as data."""
        composition, values = self.composition, dict(vars(self))
        for name in ("composition", "processor", "gpu", "torch"):
            del values[name]
        return {
            "place": {
                "processor": self.processor,
                "device": self.gpu or self.device.partition(":")[0],
                "torch": self.torch,
            },
            "recipe": composition.recipe,
            "model": composition.model.name,
            "data": list(composition.data.path),
            **values,
            "precisions": {item.name: asdict(item) for item in self.precisions},
            "gain": None if self.gain is None else asdict(self.gain),
            "advice": self.advice(),
        }
