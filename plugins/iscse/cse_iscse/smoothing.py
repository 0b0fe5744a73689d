"""What both miners are: a view's vectors, and a buffer of those of earlier steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from cse_core.builtins.fifo import Fifo
from cse_core.functional import unit
from cse_core.parts import PositiveMiner, Setup
from cse_core.types import Batch, Positives
from cse_iscse.options import SmoothingOptions


class Smoothing(PositiveMiner):
    """A miner with the last ``size`` vectors of a view (B1 of the paper, ``lbuf`` of its code).

    The public code begins with rows of zeros and looks whether the oldest is one; here the buffer
    begins empty. A batch larger than the buffer is searched whole, as there, but leaves its last
    ``size`` vectors, so that the buffer never grows.
    """

    options: SmoothingOptions

    def __init__(self, options: SmoothingOptions, setup: Setup) -> None:
        self.options = options
        self.name = setup.name
        self.buffer = Fifo()

    def positives(self, batch: Batch) -> Tensor | None:
        """Return the view's ``[A, D]`` vectors at length one, with gradient; None without it."""
        found: Positives | None = batch.targets.get(self.options.view)
        if found is None or not len(batch.anchors):
            return None
        return unit(found.vectors[:, 0])

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return the buffer."""
        return self.buffer.state_dict()

    def load_state_dict(self, state: Mapping[str, Any], *args: Any, **kwargs: Any) -> None:
        """Restore what ``state_dict`` returned."""
        self.buffer.load_state_dict(state)
