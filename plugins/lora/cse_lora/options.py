"""The options of the adapter."""

from __future__ import annotations

from pydantic import Field

from cse_core.options import Options


class LoraOptions(Options):
    """Low-rank matrices beside the linear layers of the encoder."""

    rank: int = Field(default=8, ge=1, le=1024)
    """Rank of the trained matrices."""
    alpha: float = Field(default=16.0, gt=0)
    """Their output is scaled by alpha / rank."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """Dropout of their input, in training."""
    targets: tuple[str, ...] | None = None
    """Names of the linear layers, or all-linear; by default peft's list for the encoder's family,
    mostly queries and values."""
    rslora: bool = False
    """Scale by alpha / sqrt(rank) instead, for high ranks."""
