"""Options of the parts of masked language modelling."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from cse_core.options import AugmenterOptions, TokenLossOptions

Share = Annotated[float, Field(ge=0, le=1)]


class MaskOptions(AugmenterOptions):
    """Options of ``mask``."""

    probability: Annotated[float, Field(gt=0, lt=1)] = 0.15
    """Share of the content tokens that are chosen to be predicted."""
    masked: Share = 0.8
    """Share of the chosen tokens that become the mask token."""
    random: Share = 0.1
    """Share of the chosen tokens that become a random one; the rest stays as it is."""
    whole_words: bool = False
    """Whether all tokens of a word are chosen together."""

    @model_validator(mode="after")
    def _of_the_chosen(self) -> MaskOptions:
        if self.masked + self.random > 1:
            raise ValueError(f"masked + random is {self.masked + self.random:g}, above 1")
        return self


class MlmOptions(TokenLossOptions):
    """Options of ``mlm``."""

    view: str = "masked"
    """View whose labels it predicts."""
    head: Literal["model", "new"] = "model"
    """model: begins as the prediction head of the model's folder, drawn where it has none; new:
    drawn."""
    tied: bool = True
    """Whether its matrix is the encoder's word embeddings; else it is trained as one of its own."""
