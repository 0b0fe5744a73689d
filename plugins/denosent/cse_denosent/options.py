"""Options of DenoSent's loss."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cse_core.options import TokenLossOptions

Share = Annotated[float, Field(ge=0, lt=1)]


class DenoiseOptions(TokenLossOptions):
    """Options of ``denoise``."""

    target: str = "positive"
    """View whose tokens are rebuilt from the vector of ``view``; it may be the same view."""
    noise: Share = 0.825
    """Share of the numbers of the target's input embeddings that become zero."""
    layers: Annotated[int, Field(ge=1, le=128)] = 16
    """Layers of the decoder."""
    heads: Annotated[int, Field(ge=1, le=256)] = 1
    """Heads of its attention; they divide the encoder's hidden size."""
    wide: Annotated[int, Field(ge=1, le=2**16)] = 2048
    """Size of its inner layers."""
    dropout: Share = 0.1
    """Dropout in the decoder, behind attention and linear layers."""
