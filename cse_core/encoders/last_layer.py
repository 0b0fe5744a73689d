"""The last layer for one token a row, exact where no other state of it is read.

Keys and values are made of all tokens; queries, the rest of the layer and its dropout of the tokens
that are read. With a [CLS] pooler that is a seventh of the work of a model of six layers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from transformers import PreTrainedModel

from cse_core.encoders.architecture import transformer_layers
from cse_core.encoders.row_layout import RowLayout

_KEYS, _VALUES = ("key", "k_lin", "k_proj"), ("value", "v_lin", "v_proj")


@dataclass(frozen=True)
class LastLayer:
    """The last layer of an encoder and where its keys and values are made.

    Attributes:
        blocks: All transformer layers; a model may use one several times.
        runs: Layers that a forward pass runs through.
        key: Makes keys of what enters the layer.
        value: Makes values of it.
    """

    blocks: tuple[nn.Module, ...]
    runs: int
    key: nn.Linear
    value: nn.Linear

    @staticmethod
    def find(model: PreTrainedModel) -> LastLayer | None:
        """Return the last layer, None where keys and values have no layer of their own."""
        blocks = transformer_layers(model)
        if not blocks:
            return None
        key, value = (_linear(blocks[-1], names) for names in (_KEYS, _VALUES))
        if key is None or value is None:
            return None
        return LastLayer(tuple(blocks), int(model.config.num_hidden_layers), key, value)

    @contextmanager
    def reading(self, layout: RowLayout, read: Tensor) -> Iterator[None]:
        """Run the last layer for these tokens alone.

        Args:
            layout: Where the rows are; every row has a token.
            read: ``[R]`` one token of each row, in the order of the rows.
        """
        calls = 0

        def before(_: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
            nonlocal calls
            calls += 1
            if calls != self.runs:
                return None
            entered = args[0]
            layout.memory = (self.key(entered), self.value(entered))
            return entered.index_select(1, read), *args[1:]

        handles = [block.register_forward_pre_hook(before) for block in dict.fromkeys(self.blocks)]
        try:
            yield
        finally:
            layout.memory = None
            for handle in handles:
                handle.remove()


def _linear(block: nn.Module, names: tuple[str, ...]) -> nn.Linear | None:
    found = [
        module
        for name, module in block.named_modules()
        if name.rpartition(".")[2] in names and isinstance(module, nn.Linear)
    ]
    return found[0] if len(found) == 1 else None
