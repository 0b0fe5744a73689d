"""Options of SimCSE's part."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cse_core.options import StoreOptions


class HardNegativesOptions(StoreOptions):
    """Options of ``hard-negatives``."""

    view: Annotated[str, Field(pattern=r"^negative(-.+)?$")] = "negative"
    """View that holds the hard negatives: negative, or negative-NAME for a second one."""
    column: str = "negative"
    """Column of the texts."""
    weight: float = 0.0
    """Logit added where a hard negative meets its own sentence; 0 is weight 1, log 2 weight 2."""
