"""The mean of the last two layers."""

from __future__ import annotations

from torch import Tensor

from cse_core.functional import row_means
from cse_core.options import PoolerOptions
from cse_core.parts import RowPooler, Setup
from cse_core.types import Hidden, TokenBatch


class AvgTop2(RowPooler):
    """The mean over tokens of the average of the last two states: ``avg_top2`` of SimCSE's code.

    As there special tokens count. The last but one of an encoder of one layer is what enters it.
    """

    def __init__(self, options: PoolerOptions, setup: Setup) -> None:
        self.dimension = setup.dimension
        self.below = setup.layers - 1
        self.layers = (self.below,)

    def pool(self, hidden: Hidden, tokens: TokenBatch) -> Tensor:
        """Return ``[R, H]``."""
        return row_means((hidden.layers[self.below] + hidden.last) / 2, tokens)
