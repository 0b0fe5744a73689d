"""Where a run is, and the draws that depend on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from cse_core.randomness import generator

Draws = Callable[..., torch.Generator]


@dataclass(frozen=True)
class Moment:
    """Where a run is: what every draw depends on."""

    step: int
    total_steps: int
    epoch: int
    round: int


def draws(seed: int, moment: Moment, rank: int, *place: str | int) -> Draws:
    """Return ``StepContext.generator`` of a moment.

    Args:
        seed: The run's seed.
        moment: Where the run is.
        rank: Number of the process.
        place: What else tells draws of one name apart: an augmenter's path, view and chunk.
    """

    def fresh(
        name: str, *, shared: bool = True, device: torch.device | str = "cpu"
    ) -> torch.Generator:
        who = "shared" if shared else f"rank {rank}"
        counters = (moment.round, moment.step, "part", name, who, *place)
        return generator(torch.device(device), seed, *counters)

    return fresh
