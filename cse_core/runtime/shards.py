"""Tensors of which each process holds a part, such as the weights of a sharded encoder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn

from cse_core.runtime.distributed import rank_and_size


def in_parts(tensor: Tensor) -> bool:
    """Return whether this process holds only a part of a tensor: a ``DTensor``."""
    return hasattr(tensor, "full_tensor")


@torch.no_grad()
def whole(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return tensors in one piece; every process calls it where any of them is in parts.

    What was in parts the first process gets, on the CPU; the others do not.
    """
    found: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if not in_parts(tensor):
            found[name] = tensor
            continue
        joined = tensor.full_tensor()  # type: ignore[attr-defined]
        if rank_and_size()[0] == 0:
            found[name] = joined.cpu()
    return found


def norm_of(tensors: Sequence[Tensor]) -> Tensor:
    """Return the norm of tensors together; of parts it is that of all processes' parts."""
    if not any(map(in_parts, tensors)):
        return nn.utils.get_total_norm(tensors)
    own = [tensor.to_local() for tensor in tensors]  # type: ignore[attr-defined]
    square = nn.utils.get_total_norm(own).square()
    dist.all_reduce(square)
    return square.sqrt()


def placed(tensor: Tensor, like: Tensor) -> Tensor:
    """Return a tensor where another lies, in parts if that one of its shape is."""
    if not in_parts(like) or tensor.shape != like.shape:
        return tensor.to(like.device)
    from torch.distributed.tensor import DTensor, distribute_tensor

    assert isinstance(like, DTensor)
    return distribute_tensor(tensor, like.device_mesh, like.placements, src_data_rank=None)
