"""Options of both parts."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from cse_core.options import AugmenterOptions, BranchOptions


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


class FrequentWordsOptions(AugmenterOptions):
    """Options of ``frequent-words``."""

    threshold: float = Field(default=1e-3, gt=0, lt=1)
    """Share of the corpus above which a word may be left out."""
    most: float = Field(default=0.5, ge=0, le=1)
    """Highest probability with which a word is left out."""
