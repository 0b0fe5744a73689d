"""Row poolers: a vector for each row from its token states."""

from __future__ import annotations

import torch
from torch import Tensor

from cse_core.builtins.options import FirstLastOptions
from cse_core.options import PoolerOptions
from cse_core.parts import RowPooler, Setup
from cse_core.types import Hidden, TokenBatch


def row_means(states: Tensor, tokens: TokenBatch) -> Tensor:
    """Return ``[R, H]`` means of ``[T, H]`` over each row, special tokens too, summed in fp32."""
    rows = tokens.row_of_token()
    sum_type = states.dtype if states.dtype.itemsize >= 4 else torch.float32
    sums = states.new_zeros((tokens.rows, states.shape[1]), dtype=sum_type)
    sums = sums.index_add(0, rows, states.to(sums.dtype))
    lengths = tokens.lengths.clamp_min(1).to(states.device, non_blocking=True)
    return sums / lengths.unsqueeze(1)


class Cls(RowPooler):
    """The state of each row's first token."""

    def __init__(self, options: PoolerOptions, setup: Setup) -> None:
        self.dimension = setup.dimension

    def reads(self, tokens: TokenBatch) -> Tensor:
        """Return the rows' first tokens ``[R]``."""
        return tokens.offsets[:-1]

    def pool(self, hidden: Hidden, tokens: TokenBatch) -> Tensor:
        """Return ``[R, H]``."""
        return hidden.at(self.reads(tokens))


class Mean(RowPooler):
    """The mean of a row's last states, special tokens counted as sentence-transformers does."""

    def __init__(self, options: PoolerOptions, setup: Setup) -> None:
        self.dimension = setup.dimension

    def pool(self, hidden: Hidden, tokens: TokenBatch) -> Tensor:
        """Return ``[R, H]``."""
        return row_means(hidden.last, tokens)


class FirstLast(RowPooler):
    """The mean over tokens of the average of a first and the last state (``first`` says which)."""

    def __init__(self, options: FirstLastOptions, setup: Setup) -> None:
        self.dimension = setup.dimension
        self.first = 0 if options.first == "embeddings" else 1
        self.layers = (self.first,)

    def pool(self, hidden: Hidden, tokens: TokenBatch) -> Tensor:
        """Return ``[R, H]``."""
        return row_means((hidden.layers[self.first] + hidden.last) / 2, tokens)
