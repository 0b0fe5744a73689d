"""Many processes: every process sees the whole batch, and the parts never know.

Each level's vectors and keys are gathered in rank order, every process computes the whole loss,
and the gradients of the encoder, which each process has for its own rows alone, are summed.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterable
from datetime import timedelta
from functools import cache
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.constants import default_pg_timeout
from torch.distributed.rendezvous import rendezvous

from cse_core.errors import CseError
from cse_core.runtime.device import resolve_device
from cse_core.types import Embeddings

JOIN = "CSE_JOIN_SECONDS"
"""Variable with the seconds that the processes of a run wait for each other at its begin."""


def join(device: torch.device) -> torch.device:
    """Join the other processes of this run, where a launcher started several.

    Read are the variables that torchrun sets, and launchers like it: ``WORLD_SIZE``, ``RANK``,
    ``LOCAL_RANK``, ``MASTER_ADDR`` and ``MASTER_PORT``. The group is left when the process ends.

    Returns:
        Where this process trains: its own GPU of several, else ``device``.

    Raises:
        CseError: If the machine has too few GPUs, or the processes cannot find each other.
    """
    variables = (("RANK", 0), ("WORLD_SIZE", 1), ("LOCAL_RANK", 0), (JOIN, 30))
    rank, size, local_rank, seconds = (int(os.environ.get(n) or usual) for n, usual in variables)
    if size == 1 and world()[1] == 1:
        return device
    on_gpu = device.type == "cuda"
    if on_gpu:
        device = resolve_device(f"cuda:{local_rank}")
        torch.cuda.set_device(device)
    if not dist.is_initialized():
        try:
            store = _met(timedelta(seconds=seconds))
            backend = "nccl" if on_gpu else "gloo"
            dist.init_process_group(backend, store=store, rank=rank, world_size=size)
        except (ValueError, RuntimeError) as error:
            what = f"the processes cannot find each other: {str(error).splitlines()[0][:150]}"
            hint = "start them with `torchrun --nproc-per-node N --no-python cse …` within"
            hint += f" {seconds} s ({JOIN}), or unset WORLD_SIZE for one process"
            raise CseError(what, where="WORLD_SIZE", value=size, hint=hint) from None
        atexit.register(dist.destroy_process_group)
    return device


def _met(patience: timedelta) -> Any:
    """Return what the processes find each other by, when all of them have come."""
    store, rank, size = next(iter(rendezvous("env://", timeout=patience)))
    if store.add(f"cse-rank-{rank}", 1) > 1:
        raise ValueError(f"another process also has RANK {rank}")
    store.wait([f"cse-rank-{other}" for other in range(size)], patience)
    store.set_timeout(default_pg_timeout)
    return store


def world() -> tuple[int, int]:
    """Return this process's rank and the number of processes."""
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    return 0, 1


def share(count: int, rank: int, size: int) -> tuple[int, int]:
    """Return where this process's part of ``count`` rows begins and ends."""
    equal, rest = divmod(count, size)
    start = rank * equal + min(rank, rest)
    return start, start + equal + (rank < rest)


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
    if world()[1] == 1:
        return embeddings
    sizes = _sizes(embeddings.vectors)
    return Embeddings(
        _whole(embeddings.vectors, sizes),
        _whole(embeddings.owner, sizes),
        _whole(embeddings.slot, sizes),
        _whole(embeddings.length, sizes),
    )


def gather_rows(values: Tensor) -> Tensor:
    """Return the rows of all processes in rank order."""
    return values if world()[1] == 1 else _whole(values, _sizes(values))


def total(count: int) -> int:
    """Return the sum of a number over the processes; no device is waited for."""
    return int(_summed(torch.tensor([count]))[0])


def wait() -> None:
    """Wait for all processes."""
    if world()[1] > 1:
        dist.barrier()


def _sizes(values: Tensor) -> list[int]:
    rank, size = world()
    counts = torch.zeros(size, dtype=torch.int64)
    counts[rank] = len(values)
    sizes: list[int] = _summed(counts).tolist()
    return sizes


def _summed(counts: Tensor) -> Tensor:
    """Return the sum over the processes of a tensor on the CPU."""
    if world()[1] > 1:
        dist.all_reduce(counts, group=_on_cpu())
    return counts


@cache
def _on_cpu() -> dist.ProcessGroup | None:
    """Return a group for what is known on the CPU, so that no GPU is waited for."""
    return None if dist.get_backend() == "gloo" else dist.new_group(backend="gloo")


def _whole(values: Tensor, sizes: list[int]) -> Tensor:
    gathered: Tensor = _Gather.apply(  # type: ignore[no-untyped-call]
        values.contiguous(), sizes, world()[0]
    )
    return gathered


def sum_gradients(parameters: Iterable[torch.nn.Parameter], factor: float = 1.0) -> None:
    """Sum gradients over the processes, times a factor; one that some lack is zero there."""
    if world()[1] == 1:
        return
    trained = [parameter for parameter in dict.fromkeys(parameters) if parameter.requires_grad]
    used = _summed(torch.tensor([int(parameter.grad is not None) for parameter in trained]))
    for parameter, processes in zip(trained, used.tolist(), strict=True):
        if not processes:
            continue  # the optimiser leaves it alone, as in one process
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        dist.all_reduce(parameter.grad)
        if factor != 1.0:
            parameter.grad.mul_(factor)
