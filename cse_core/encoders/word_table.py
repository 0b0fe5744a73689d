"""Looking words up in the embedding table, with a gradient that costs what the words cost."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable


class WordTable:
    """The word-embedding table of an encoder.

    On a CPU torch makes a new gradient of the table's size at every step; touching that memory for
    the first time takes a tenth of a training step. Here it is made once and kept.

    Args:
        table: The embedding module.
    """

    def __init__(self, table: nn.Embedding) -> None:
        self.table = table
        self._plain = type(table) is nn.Embedding and not (
            table.sparse or table.scale_grad_by_freq or table.max_norm is not None
        )
        self._gradient: Tensor | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> WordTable:
        return WordTable(copy.deepcopy(self.table, memo))

    def __call__(self, ids: Tensor) -> Tensor:
        """Return the embeddings ``[T, E]`` of ``[T]`` ids."""
        weight = self.table.weight
        trained = weight.requires_grad and torch.is_grad_enabled()
        if not (self._plain and trained and weight.device.type == "cpu"):
            embedded: Tensor = self.table(ids)
        else:
            embedded = _LookUp.apply(weight, ids, self)  # type: ignore[no-untyped-call]
        return embedded

    def add(self, ids: Tensor, gradient: Tensor) -> None:
        """Add ``[T, E]`` to the gradient of the rows of ``[T]`` ids."""
        weight, padding = self.table.weight, self.table.padding_idx
        if weight.grad is None:
            if self._gradient is None:
                self._gradient = torch.empty_like(weight)
            weight.grad = self._gradient.zero_()
        if padding is not None:
            gradient = gradient.masked_fill((ids == padding).unsqueeze(1), 0.0)
        weight.grad.index_add_(0, ids, gradient.to(weight.grad.dtype))


class _LookUp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, ids: Tensor, table: WordTable) -> Tensor:
        ctx.table = table
        ctx.save_for_backward(ids)
        return weight.index_select(0, ids)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None, None]:
        (ids,) = ctx.saved_tensors
        ctx.table.add(ids, gradient)
        return None, None, None
