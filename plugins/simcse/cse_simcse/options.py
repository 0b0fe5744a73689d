"""Options of SimCSE's part."""

from __future__ import annotations

from cse_core.options import StoreOptions


class HardNegativesOptions(StoreOptions):
    """Options of ``hard-negatives``."""

    view: str = "negative"
    """View that holds the hard negatives."""
    column: str = "negative"
    """Column of the texts."""
    weight: float = 0.0
    """Logit added where a hard negative meets its own sentence: 0 is weight 1, log 2 is weight 2."""
