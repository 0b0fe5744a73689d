"""Many processes: every process sees the whole batch, and the parts never know.

Each level's vectors and keys are gathered in rank order, every process computes the whole loss,
and the gradients of the encoder, which each process has for its own rows alone, are summed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from cse_core.types import Embeddings


def world() -> tuple[int, int]:
    """Return this process's rank and the number of processes."""
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    return 0, 1


def share(count: int, rank: int, size: int) -> tuple[int, int]:
    """Return where this process's part of ``count`` rows begins and ends."""
    each, rest = divmod(count, size)
    start = rank * each + min(rank, rest)
    return start, start + each + (rank < rest)


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, sizes: list[int], rank: int) -> Tensor:
        ctx.place = sum(sizes[:rank]), sum(sizes[: rank + 1])
        longest = max(sizes)
        padded = values.new_zeros(longest, *values.shape[1:])
        padded[: len(values)] = values
        parts = [torch.empty_like(padded) for _ in sizes]
        dist.all_gather(parts, padded)
        return torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        start, stop = ctx.place
        return gradients[0][start:stop].contiguous(), None, None


def gather(embeddings: Embeddings) -> Embeddings:
    """Return the embeddings of all processes in rank order, with gradient for one's own."""
    rank, size = world()
    if size == 1:
        return embeddings
    count = torch.tensor([len(embeddings)], device=embeddings.vectors.device)
    counts = [torch.empty_like(count) for _ in range(size)]
    dist.all_gather(counts, count)
    sizes = [int(each) for each in counts]

    def whole(values: Tensor) -> Tensor:
        gathered: Tensor = _Gather.apply(values, sizes, rank)
        return gathered

    return Embeddings(
        whole(embeddings.vectors.contiguous()),
        whole(embeddings.owner),
        whole(embeddings.slot),
        whole(embeddings.length),
    )


def sum_gradients(parameters: Iterable[torch.nn.Parameter]) -> None:
    """Sum gradients over the processes, a missing one as zero."""
    _reduce(parameters, 1.0)


def average_gradients(parameters: Iterable[torch.nn.Parameter]) -> None:
    """Average gradients that every process has in full."""
    _reduce(parameters, 1.0 / world()[1])


def _reduce(parameters: Iterable[torch.nn.Parameter], factor: float) -> None:
    if world()[1] == 1:
        return
    for parameter in parameters:
        if not parameter.requires_grad:
            continue
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        dist.all_reduce(parameter.grad)
        if factor != 1.0:
            parameter.grad.mul_(factor)
