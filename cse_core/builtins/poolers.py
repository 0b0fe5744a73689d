"""Row poolers: a vector for each row from its token states."""

from __future__ import annotations

from torch import Tensor

from cse_core.builtins.options import FirstLastOptions
from cse_core.functional import row_means
from cse_core.options import PoolerOptions
from cse_core.parts import RowPooler, Setup
from cse_core.types import Hidden, TokenBatch


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
