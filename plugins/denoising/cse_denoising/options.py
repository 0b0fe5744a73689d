"""Options of the parts of TSDAE."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from cse_core.options import AugmenterOptions, TokenLossOptions


class DeleteWordsOptions(AugmenterOptions):
    """Options of ``delete-words``."""

    probability: Annotated[float, Field(gt=0, lt=1)] = 0.6
    """Share of the words that are deleted; at least one word stays."""


class ReconstructionOptions(TokenLossOptions):
    """Options of ``reconstruction``."""

    column: str = "text"
    """Column of the texts that are rebuilt."""
    decoder: Literal["auto", "tied", "copy", "new"] = "auto"
    """tied: the encoder's own layers, read from left to right; copy: a trained copy of the model;
    new: small layers of its own; auto: tied where the encoder's family allows it, else new."""
    layers: Annotated[int, Field(ge=1, le=64)] | None = None
    """Layers of a new decoder; by default 2."""

    @model_validator(mode="after")
    def _layers_of_a_new_one(self) -> ReconstructionOptions:
        if self.layers is not None and self.decoder in ("tied", "copy"):
            raise ValueError(f"layers has no effect: decoder = {self.decoder} has the encoder's")
        return self
