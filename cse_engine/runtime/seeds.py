"""Counter-based randomness: a seed for every purpose, derived from where the run is.

Nobody keeps random state. A draw depends on the run's seed, the round, the step and a name, so that
resuming, second passes, gradient caching and many processes draw the same, and adding a part
changes no other part's draws.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from cse_core.functional import derive_seed


def generator(device: torch.device, *counters: int | str) -> torch.Generator:
    """Return a new generator on a device, seeded from the counters."""
    fresh = torch.Generator(device=device)
    fresh.manual_seed(derive_seed(*counters))
    return fresh


@dataclass(frozen=True)
class StepPosition:
    """Where a run is: what every draw depends on."""

    step: int
    total_steps: int
    epoch: int
    round: int
