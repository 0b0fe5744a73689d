"""What an encoder computes in less time or memory than its model would, with the same results."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

from cse_core.errors import CseError
from cse_core.protocols import DropoutSource
from cse_defaults.transformers.architecture import transformer_layers
from cse_defaults.transformers.attention import RowLayout

_KEYS, _VALUES = ("key", "k_lin", "k_proj"), ("value", "v_lin", "v_proj")


class WordTable:
    """The word-embedding table of an encoder.

    On a CPU torch makes a new gradient of the table's size at every step; touching that memory for
    the first time takes a tenth of a training step. Here it is made once and kept.
    """

    def __init__(self, table: nn.Embedding) -> None:
        self.table = table
        self._gradient: Tensor | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> WordTable:
        return WordTable(copy.deepcopy(self.table, memo))

    def __call__(self, ids: Tensor) -> Tensor:
        """Return the embeddings ``[T, E]`` of ``[T]`` ids."""
        table, weight = self.table, self.table.weight
        # A subclass, as one that scales its vectors, looks up in its own way.
        plain = type(table) is nn.Embedding and not (
            table.sparse or table.scale_grad_by_freq or table.max_norm is not None
        )
        trained = weight.requires_grad and torch.is_grad_enabled()
        ours = plain and trained and weight.device.type == "cpu"
        embedded: Tensor = _LookUp.apply(weight, ids, self) if ours else self.table(ids)  # type: ignore[no-untyped-call]
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


@dataclass(frozen=True)
class LastLayer:
    """The last layer for one token a row, exact where no other state of it is read.

    Keys and values are made of all tokens; queries, the rest of the layer and its dropout of the
    tokens that are read. With a [CLS] pooler that saves a seventh of a model of six layers.

    Attributes:
        runs: Layers that a forward pass runs through; a model may use one several times.
        key: Name, inside the last layer, of what makes keys of what enters it.
        value: The same of values. Modules are looked up in every pass: an adapter or a branch may
            have put others in their place.
    """

    runs: int
    key: str
    value: str

    @staticmethod
    def find(model: PreTrainedModel) -> LastLayer | None:
        """Return the last layer, None where keys and values have no layer of their own."""
        blocks = transformer_layers(model)
        if not blocks:
            return None
        key, value = (_linear(blocks[-1], names) for names in (_KEYS, _VALUES))
        if key is None or value is None:
            return None
        return LastLayer(int(model.config.num_hidden_layers), key, value)

    def reading(
        self, model: PreTrainedModel, layout: RowLayout, read: Tensor
    ) -> AbstractContextManager[None] | None:
        """Run the last layer for ``[R]`` tokens alone, one of each row in the order of the rows.

        None where the layer has no such modules any more: it runs for all tokens then.
        """
        blocks = transformer_layers(model)
        try:
            key, value = (blocks[-1].get_submodule(name) for name in (self.key, self.value))
        except (AttributeError, IndexError):
            return None
        return self._reading(blocks, key, value, layout, read)

    @contextmanager
    def _reading(
        self, blocks: list[nn.Module], key: nn.Module, value: nn.Module, layout: RowLayout,
        read: Tensor,
    ) -> Iterator[None]:  # fmt: skip
        calls = 0

        def before(_: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
            nonlocal calls
            calls += 1
            if calls != self.runs:
                return None
            entered = args[0]
            layout.memory = (key(entered), value(entered))
            return entered.index_select(1, read), *args[1:]

        with ExitStack() as hooks:
            hooks.callback(setattr, layout, "memory", None)
            for block in dict.fromkeys(blocks):
                hooks.enter_context(block.register_forward_pre_hook(before))
            yield


def _linear(block: nn.Module, names: tuple[str, ...]) -> str | None:
    linears = [
        name
        for name, module in block.named_modules()
        if name.rpartition(".")[2] in names and isinstance(module, nn.Linear)
    ]
    return linears[0] if len(linears) == 1 else None


def recompute_layers(model: PreTrainedModel, source: DropoutSource) -> None:
    """Keep of each transformer layer what enters it alone, in passes with gradient.

    What comes of it is the same, bit for bit: the masks that ``source`` gave are drawn once more.
    transformers' own switch calls a layer's hooks again too, and these end with the forward pass.
    """
    layers = transformer_layers(model)
    if not layers:
        what = f"the layers of {type(model).__name__} are not known"
        where = "model.gradient_checkpointing"
        raise CseError(what, where=where, value=True, hint="leave it out, or set train.chunk_size")
    for layer in dict.fromkeys(layers):
        # A copy of the model copies this with the layer's own method.
        layer.forward = partial(_forward, layer.forward, source)


def _forward(forward: Callable[..., Any], source: DropoutSource, *given: Any, **named: Any) -> Any:
    if not torch.is_grad_enabled():
        return forward(*given, **named)
    layout: RowLayout | None = named.get("row_layout")
    state, memory = source.state, layout.memory if layout else None

    @contextmanager
    def as_it_was() -> Iterator[None]:
        before, source.state = source.state, state
        if layout is not None:
            layout.memory = memory
        try:
            yield
        finally:
            source.state = before
            if layout is not None:
                layout.memory = None

    return checkpoint(
        forward,
        *given,
        use_reentrant=False,
        context_fn=lambda: (nullcontext(), as_it_was()),
        **named,
    )
