"""A training run that is measured, whoever makes it, and what it is watched for."""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

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
        device: ``cpu``, or a GPU as torch names it.
        unpad: Whether sentence-transformers gives FlashAttention rows without padding.
        again: Whether layers are computed again in the backward pass instead of kept.
    """

    who: str
    model: str
    texts: str
    length: int
    batch: int
    steps: int
    precision: str = "fp32"
    chunk: int | None = None
    device: str = "cpu"
    unpad: bool = False
    again: bool = False


@dataclass
class Watch:
    """What a run is watched for: when each step ended, and the memory of the steps.

    On a GPU a step has ended when the GPU gets there; nothing waits for it meanwhile.

    Attributes:
        device: Where it runs.
        ends: When each step ended; on a GPU torch's events.
        before: Memory in MB before the first step, all loaded: of the process, or on a GPU of
            torch's tensors there.
        most: Peak of that memory from then to the end of the last step; of the whole process where
            the system cannot forget a peak.
    """

    device: str = "cpu"
    ends: list[Any] = field(default_factory=list)
    before: float = 0.0
    most: float = 0.0

    def begin(self) -> None:
        """Note that everything is loaded."""
        if self.device == "cpu":
            self.before = resident()
            forget_peak()
        else:
            import torch

            gc.collect()  # what an earlier run left in cycles would count here too
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
            self.before = torch.cuda.memory_allocated() / 2**20

    def step(self) -> None:
        """Note that a step ended."""
        if self.device == "cpu":
            self.ends.append(time.perf_counter())
            self.most = peak()
        else:
            import torch

            self.ends.append(torch.cuda.Event(enable_timing=True))
            self.ends[-1].record()
            self.most = torch.cuda.max_memory_allocated() / 2**20

    @property
    def seconds(self) -> list[float]:
        """Return the seconds of each step but the first."""
        if self.device == "cpu":
            return [after - before for before, after in pairwise(self.ends)]
        self.ends[-1].synchronize()
        return [one.elapsed_time(other) / 1000 for one, other in pairwise(self.ends)]
