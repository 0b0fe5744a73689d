"""Options of the loss."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field

from cse_core.options import LossOptions, Temperature


class ArcOptions(LossOptions):
    """Options of ``arc``."""

    temperature: Temperature = 0.05
    """Softmax temperature: cosines are divided by it."""
    margin: float = Field(default=10.0, ge=0, le=90)
    """Angle that is added to the angle between an anchor and its positive."""
    unit: Literal["degrees", "radians"] = "degrees"
    """Unit of the margin."""
    similarity: Literal["cosine"] = "cosine"
    """An angle needs the cosine."""

    @property
    def radians(self) -> float:
        """Return the margin in radians."""
        return math.radians(self.margin) if self.unit == "degrees" else self.margin
