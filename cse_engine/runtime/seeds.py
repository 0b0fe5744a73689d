"""Counter-based randomness: a seed for every purpose, derived from where the run is.

Nobody keeps random state. A draw depends on the run's seed, the round, the step and a name, so that
resuming, second passes, gradient caching and many processes draw the same, and adding a part
changes no other part's draws.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from cse_core.functional import derive_seed, hashed_uniform
from cse_core.token_batch import TokenBatch, positions_of
from cse_core.types import StepContext


def generator(device: torch.device, *counters: int | str) -> torch.Generator:
    """Return a new generator on a device, seeded from the counters."""
    fresh = torch.Generator(device=device)
    fresh.manual_seed(derive_seed(*counters))
    return fresh


Draws = Callable[..., torch.Generator]
Uniform = Callable[[str, TokenBatch], Tensor]


@dataclass(frozen=True)
class StepPosition:
    """Where a run is: what every draw depends on."""

    step: int
    total_steps: int
    epoch: int
    round: int


Position = StepPosition | StepContext


def draws(seed: int, position: Position, rank: int, *place: str | int) -> Draws:
    """Return ``StepContext.generator`` of a position, in the process of a rank.

    ``place`` is what else tells draws of one name apart: an augmenter's path, view and chunk.
    """

    def fresh(
        name: str, *, shared: bool = True, device: torch.device | str = "cpu"
    ) -> torch.Generator:
        who = "shared" if shared else f"rank {rank}"
        counters = (position.round, position.step, "part", name, who, *place)
        return generator(torch.device(device), seed, *counters)

    return fresh


def uniform_draws(seed: int, position: Position, first: int, *place: str) -> Uniform:
    """Return ``StepContext.uniform`` of a position, of rows whose owners count from ``first``."""

    def drawn(name: str, tokens: TokenBatch) -> Tensor:
        key = derive_seed(seed, position.round, position.step, "uniform", name, *place)
        row, device = tokens.row_of_token(), tokens.ids.device
        places = positions_of(tokens.offsets).to(device, non_blocking=True)
        return hashed_uniform(key, tokens.owner[row] + first, tokens.slot[row], places)

    return drawn
