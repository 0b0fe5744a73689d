"""A training run that is measured, whoever makes it, and what it is watched for."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from tests.benchmarks.measure import differences
from tests.benchmarks.resident import forget_peak, peak, resident

TEMPERATURE, LR, SEED = 0.05, 3e-5, 1


@dataclass(frozen=True)
class Work:
    """One training run that is measured: SimCSE, or a recipe over it, on the texts in their order.

    Attributes:
        who: Name of a recipe of cse, or ``sentence-transformers``.
        model: Folder of the encoder.
        texts: File with a text a line; none comes twice, steps times batch of them at least.
        length: Tokens of a text at most, two special tokens counted.
        steps: Measured steps, after one that is not.
        chunk: Sentences encoded at once, by gradient caching; None encodes the batch at once.
        wrap: What hicl wraps in special tokens: ``segment`` or ``sentence``.
    """

    who: str
    model: str
    texts: str
    length: int
    batch: int
    steps: int
    precision: str = "fp32"
    chunk: int | None = None
    wrap: str = "segment"


@dataclass
class Watch:
    """What a run is watched for: when each step ended, and the memory of the steps.

    Attributes:
        ends: When each step ended.
        before: Resident memory in MB before the first step, all loaded.
        most: Peak resident memory in MB from then to the end of the last step; of the whole
            process where the system cannot forget a peak.
    """

    ends: list[float] = field(default_factory=list)
    before: float = 0.0
    most: float = 0.0

    def begin(self) -> None:
        """Note that everything is loaded."""
        self.before = resident()
        forget_peak()

    def step(self) -> None:
        """Note that a step ended."""
        self.ends.append(time.perf_counter())
        self.most = peak()

    @property
    def seconds(self) -> list[float]:
        """Return the seconds of each step but the first."""
        return differences(self.ends)
