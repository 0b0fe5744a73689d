"""Options of the branch."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from cse_core.options import BranchOptions


class AdapterOptions(BranchOptions):
    """Options of ``adapter``."""

    width: int = Field(default=16, ge=1)
    """Dimension of the bottleneck."""
    after: tuple[int, ...] | None = None
    """Layers behind which an adapter stands, the first is 1; by default all."""
    copies: Literal["encoder"] = "encoder"
    """The heads are the online ones."""
    embeddings: Literal["copied"] = "copied"
    """The word embeddings are those of the start too."""
