"""Options of the parts of masked language modelling."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from cse_core.options import AugmenterOptions, Options, TokenLossOptions

Share = Annotated[float, Field(ge=0, le=1)]


class HidingOptions(Options):
    """Which tokens are hidden, and how."""

    probability: Annotated[float, Field(gt=0, lt=1)] = 0.15
    """Share of the content tokens that are chosen to be predicted."""
    masked: Share = 0.8
    """Share of the chosen tokens that become the mask token."""
    random: Share = 0.1
    """Share of the chosen tokens that become a random one; the others stay unchanged."""
    whole_words: bool = False
    """Whether all tokens of a word are chosen together."""
    token: str | None = None
    """Token of the vocabulary that hides others; by default the tokenizer's mask token."""

    @model_validator(mode="after")
    def _of_the_chosen(self) -> HidingOptions:
        if self.masked + self.random > 1:
            raise ValueError(f"masked + random is {self.masked + self.random:g}, above 1")
        return self


class MaskOptions(HidingOptions, AugmenterOptions):
    """Options of ``mask``."""


class AuxiliaryMlmOptions(HidingOptions, TokenLossOptions):
    """Options of ``auxiliary-mlm``."""

    second: str | None = "positive"
    """Another view that it reads, of the same branch; none: it reads one."""
    lower: Annotated[int, Field(ge=1)] | None = None
    """Layers of the run's original model that read the hidden tokens and are not trained; by
    default half of them."""
    dropout: bool = False
    """Whether these layers use dropout."""
    layers: Annotated[int, Field(ge=1)] = 2
    """New layers above them, which are trained and also read the sentence's first state."""

    @model_validator(mode="after")
    def _two_views(self) -> AuxiliaryMlmOptions:
        if self.second == self.view:
            raise ValueError(f"second is {self.second}, the same as view: set it to none")
        return self


class MlmOptions(TokenLossOptions):
    """Options of ``mlm``."""

    view: str = "masked"
    """View whose labels it predicts."""
    head: Literal["model", "new"] = "model"
    """model: starts as the prediction head of the model's folder, or random if there is none; new:
    random."""
    tied: bool = True
    """Whether its matrix is the encoder's word embeddings; else it has its own."""
    frozen: bool = False
    """Whether the head stays as the model's folder has it."""
    shifted: bool = False
    """Whether a token is predicted from the state before it, as decoders do; a row's first token is
    then not predicted."""

    @model_validator(mode="after")
    def _frozen_as_it_is(self) -> MlmOptions:
        if self.frozen and (self.tied or self.head == "new"):
            raise ValueError("frozen needs tied = false and head = model: the folder's own weights")
        return self
