"""Gradients summed over the processes in buckets, while the backward pass still runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
from torch.nn import Parameter

from cse_core.runtime.distributed import all_reduce_max, rank_and_size

MIN_BUCKET_BYTES = 25 * 2**20
"""Bytes from which on a bucket takes no further parameter: large enough for the network to be busy
with it, small enough to be under way early."""


@dataclass
class _Bucket:
    """Parameters whose gradients are summed by one call.

    Attributes:
        factor: By which their sum is multiplied.
        missing: Those whose gradient has still to come in this backward pass.
        used: Of each, whether this process had a gradient.
        work: The call that is under way.
    """

    parameters: list[Parameter]
    factor: float
    missing: set[Parameter] = field(default_factory=set)
    used: list[bool] = field(default_factory=list)
    work: Any = None

    def accepts(self, parameter: Parameter, factor: float) -> bool:
        """Return whether a parameter may be put in."""
        first = self.parameters[0]
        equal = (first.dtype, first.device) == (parameter.dtype, parameter.device)
        return (
            equal and factor == self.factor and sum(map(_bytes, self.parameters)) < MIN_BUCKET_BYTES
        )

    def start(self) -> None:
        """Begin to sum; the gradients are from here on parts of one tensor."""
        self.used = [parameter.grad is not None for parameter in self.parameters]
        found = [torch.zeros_like(p) if p.grad is None else p.grad for p in self.parameters]
        flat = [gradient.reshape(-1) for gradient in found]
        whole = flat[0] if len(flat) == 1 else torch.cat(flat)
        parts = torch.split(whole, [len(part) for part in flat])
        for parameter, part in zip(self.parameters, parts, strict=True):
            parameter.grad = part.view_as(parameter)
        self.work = dist.all_reduce(whole, async_op=True)

    def finish(self, used: list[int]) -> None:
        """Wait for the sum; a gradient that no process had is none again.

        The optimiser then leaves its parameter alone, as in one process.
        """
        self.work.wait()
        for parameter, anybody in zip(self.parameters, used, strict=True):
            if not anybody:
                parameter.grad = None
            elif self.factor != 1.0 and parameter.grad is not None:
                parameter.grad.mul_(self.factor)


class GradientReducer:
    """The gradients of one step, summed over the processes.

    Buckets are filled in reverse order of the parameters, about that in which backward reaches
    them, and go out in this order in every process: one waits for those before it. What no hook
    sees, since no backward pass reaches it, goes out at the end. One process alone does nothing.

    Args:
        shared: Parameters of which each process has the gradient for its own rows.
        whole: Those of which each has it in full, from the objective over all rows.
    """

    def __init__(self, shared: Iterable[Parameter], whole: Iterable[Parameter] = ()) -> None:
        size = rank_and_size()[1]
        factors = dict.fromkeys(shared, 1.0)
        for parameter in whole:
            factors.setdefault(parameter, 1.0 / size)
        self._buckets: list[_Bucket] = []
        self._bucket_of: dict[Parameter, _Bucket] = {}
        self._started = 0
        for parameter, factor in reversed(factors.items()) if size > 1 else ():
            if not parameter.requires_grad:
                continue
            if self._buckets and self._buckets[-1].accepts(parameter, factor):
                self._buckets[-1].parameters.append(parameter)
            else:
                self._buckets.append(_Bucket([parameter], factor))
            self._bucket_of[parameter] = self._buckets[-1]

    @contextmanager
    def overlap_backward(self, reached: Collection[Parameter] | None = None) -> Iterator[None]:
        """Sum gradients as they come in the backward pass that is made inside, the last one.

        Args:
            reached: Parameters that this pass may reach; None is all. Others have what they get.

        Raises:
            RuntimeError: From a later pass that reaches a parameter whose sum has begun.
        """
        for bucket in self._buckets:
            bucket.missing = {p for p in bucket.parameters if reached is None or p in reached}
        hooks = [
            parameter.register_post_accumulate_grad_hook(self._come)  # type: ignore[no-untyped-call]
            for parameter in self._bucket_of
        ]
        try:
            self._start()
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def finish(self) -> None:
        """Sum what is left, and wait for all; every process calls it after its backward passes."""
        self._start(everything=True)
        used = all_reduce_max([int(had) for bucket in self._buckets for had in bucket.used])
        for bucket in self._buckets:
            bucket.finish(used[: len(bucket.used)])
            used = used[len(bucket.used) :]

    def _come(self, parameter: Parameter) -> None:
        bucket = self._bucket_of[parameter]
        if bucket.work is not None:
            raise RuntimeError("a gradient came after its sum had begun")
        bucket.missing.discard(parameter)
        self._start()

    def _start(self, everything: bool = False) -> None:
        for bucket in self._buckets[self._started :]:
            if bucket.missing and not everything:
                break
            bucket.start()
            self._started += 1


NO_REDUCER = GradientReducer(())
"""Sums no gradient."""


def _bytes(parameter: Parameter) -> int:
    return parameter.numel() * parameter.element_size()
