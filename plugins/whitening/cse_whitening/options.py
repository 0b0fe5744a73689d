"""Options of the head."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from cse_core.options import HeadOptions


class WhiteningOptions(HeadOptions):
    """Options of ``whitening``."""

    keep: Literal["train", "always"] = "always"
    """train: dropped from the saved model; always: part of it."""
    dimension: Annotated[int, Field(ge=1, le=2**16)] | None = None
    """Directions of the largest variance that are kept (k); by default all."""
