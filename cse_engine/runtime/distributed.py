"""Many processes: every process sees the whole batch, and the parts never know.

Vectors are gathered in rank order, every process computes the whole loss, and the gradients of the
encoder, which each process has only for its own rows, are summed (:func:`sum_gradients`).
"""

from __future__ import annotations

import atexit
import math
import os
from collections.abc import Iterable, Sequence
from datetime import timedelta
from functools import cache
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.constants import default_pg_timeout
from torch.distributed.rendezvous import rendezvous
from torch.nn import Parameter

from cse_core.errors import CseError
from cse_engine.runtime.device import resolve_device

MAX_WAIT = timedelta(days=30)
"""How long processes wait for one that works alone; one that has ended is noticed at once."""
JOIN_SECONDS = "CSE_JOIN_SECONDS"
"""Variable with the seconds that the processes of a run wait for each other at its begin."""


def join(device: torch.device) -> torch.device:
    """Join the other processes of this run, where a launcher started several.

    Read are the variables that torchrun sets, and launchers like it: ``WORLD_SIZE``, ``RANK``,
    ``LOCAL_RANK``, ``MASTER_ADDR`` and ``MASTER_PORT``. The group is left when the process ends.
    Returned is where this process trains: its own GPU of several, else ``device``.
    """
    variables = (("RANK", 0), ("WORLD_SIZE", 1), ("LOCAL_RANK", 0), (JOIN_SECONDS, 30))
    rank, size, local_rank, seconds = (int(os.environ.get(n) or usual) for n, usual in variables)
    if size == 1 and rank_and_size()[1] == 1:
        return device
    on_gpu = device.type == "cuda"
    if on_gpu:
        device = resolve_device(f"cuda:{local_rank}")
        torch.cuda.set_device(device)
    if not dist.is_initialized():
        try:
            store = _rendezvous(timedelta(seconds=seconds))
            backend = "nccl" if on_gpu else "gloo"
            dist.init_process_group(backend, store=store, rank=rank, world_size=size)
        except (ValueError, RuntimeError) as error:
            what = f"the processes cannot find each other: {str(error).splitlines()[0][:150]}"
            hint = "start them with `torchrun --nproc-per-node N --no-python cse …` within"
            hint += f" {seconds} s ({JOIN_SECONDS}), or unset WORLD_SIZE for one process"
            raise CseError(what, where="WORLD_SIZE", value=size, hint=hint) from None
        atexit.register(dist.destroy_process_group)
    return device


def _rendezvous(patience: timedelta) -> Any:
    """Return the store of the rendezvous, once all processes have joined."""
    store, rank, size = next(iter(rendezvous("env://", timeout=patience)))
    if store.add(f"cse-rank-{rank}", 1) > 1:
        raise ValueError(f"another process also has RANK {rank}")
    store.wait([f"cse-rank-{other}" for other in range(size)], patience)
    store.set_timeout(default_pg_timeout)
    return store


def rank_and_size() -> tuple[int, int]:
    """Return this process's rank and the number of processes."""
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    return 0, 1


def share(count: int, rank: int, size: int) -> tuple[int, int]:
    """Return the bounds of a process's share of ``count`` rows."""
    equal, rest = divmod(count, size)
    start = rank * equal + min(rank, rest)
    return start, start + equal + (rank < rest)


def row_counts(several: Sequence[Tensor]) -> list[list[int]]:
    """Return each tensor's row count in every process, in rank order: one small message."""
    rank, size = rank_and_size()
    counts = torch.zeros(len(several), size, dtype=torch.int64)
    counts[:, rank] = torch.tensor([len(rows) for rows in several])
    table: list[list[int]] = all_reduce_total(counts).tolist()
    return table


def gather(several: Sequence[Tensor], counts: Sequence[Sequence[int]]) -> list[Tensor]:
    """Return the rows of all processes in rank order, of several tensors in one call.

    ``several`` are ``[n, ...]``; their gradient ends here. ``counts`` are of :func:`row_counts`.
    """
    rank, size = rank_and_size()
    if size == 1 or not several:
        return list(several)
    widths = [math.prod(tensor.shape[1:]) * tensor.element_size() for tensor in several]
    lengths = torch.tensor(counts).T * torch.tensor(widths)
    longest, mine = int(lengths.sum(1).max()), int(lengths[rank].sum())
    flat = [tensor.detach().contiguous().view(torch.uint8).flatten() for tensor in several]
    sent = torch.cat([*flat, flat[0].new_zeros(longest - mine)])
    every = sent.new_empty(size, longest)
    if longest:
        # The second is the first's name before torch 2.13.
        into = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
        into(every.flatten(), sent)
    parts = [row[: sum(n)].split(n) for row, n in zip(every, lengths.tolist(), strict=True)]
    return [
        torch.cat(pieces).view(tensor.dtype).view(-1, *tensor.shape[1:])
        for tensor, pieces in zip(several, zip(*parts, strict=True), strict=True)
    ]


def sum_gradients(shared: Iterable[Parameter], whole: Iterable[Parameter] = ()) -> None:
    """Sum the gradients of a step; every process calls it after its backward passes.

    A gradient that no process had stays None: the optimiser then leaves its parameter alone, as in
    one process.

    Args:
        shared: Parameters of which each process has the gradient for its own rows.
        whole: Those of which each has it in full, from the objective over all rows.
    """
    size = rank_and_size()[1]
    if size == 1:
        return
    factors = {**dict.fromkeys(whole, 1.0 / size), **dict.fromkeys(shared, 1.0)}
    trained = [parameter for parameter in factors if parameter.requires_grad]
    used = all_reduce_total(torch.tensor([int(p.grad is not None) for p in trained]))
    groups: dict[tuple[torch.dtype, torch.device], list[Parameter]] = {}
    for parameter, anybody in zip(trained, used.tolist(), strict=True):
        if anybody:
            groups.setdefault((parameter.dtype, parameter.device), []).append(parameter)
    for parameters in groups.values():
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
        dist.all_reduce(flat)
        parts = torch.split(flat, [parameter.numel() for parameter in parameters])
        for parameter, part in zip(parameters, parts, strict=True):
            parameter.grad = part.view_as(parameter).mul_(factors[parameter])


def all_reduce_sum(count: int) -> int:
    """Sum a number over the processes; no device is waited for."""
    return int(all_reduce_total(torch.tensor(count)))


def all_reduce_total(numbers: Tensor) -> Tensor:
    """Sum numbers over the processes, in place: those on the CPU wait for no device."""
    if rank_and_size()[1] > 1 and numbers.numel():
        dist.all_reduce(numbers, group=cpu_group() if numbers.device.type == "cpu" else None)
    return numbers


def barrier() -> None:
    """Wait for all processes."""
    if rank_and_size()[1] > 1:
        dist.barrier()


@cache
def cpu_group() -> Any:
    """Make the group for what is known on the CPU, so that no GPU is waited for."""
    return dist.new_group(backend="gloo", timeout=MAX_WAIT)
