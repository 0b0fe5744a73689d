"""Options of the parts of DiffCSE."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from cse_core.options import ModelName, TokenLossOptions, TransformOptions

Share = Annotated[float, Field(ge=0, le=1)]


class ReplacedTokensOptions(TokenLossOptions):
    """Options of ``replaced-tokens``."""

    others: tuple[str, ...] = ("positive",)
    """Other views that it reads, of the same branch. Of triplets the authors' code reads the hard
    negatives too: ``["positive", "negative"]``."""
    generator: ModelName = "self"
    """Masked language model with the run's vocabulary that fills masked tokens; it is not trained.
    self: the run's own model as its folder has it."""
    probability: Annotated[float, Field(gt=0, lt=1)] = 0.15
    """Share of the content tokens that are changed for the generator."""
    masked: Share = 0.8
    """Share of these that become the mask token."""
    random: Share = 0.1
    """Share of these that become a random token; the others stay unchanged."""
    fill: Literal["argmax", "sample"] = "argmax"
    """argmax: the generator's most probable token (the authors' code); sample: one drawn by its
    probabilities (the paper)."""
    replaced: Literal["all", "masked"] = "all"
    """Tokens that the generator may replace: all (the authors' code), or only masked ones."""
    places: Literal["content", "all"] = "all"
    """Tokens that may be replaced and are judged: content tokens, or special ones too."""

    @model_validator(mode="after")
    def _of_the_chosen(self) -> ReplacedTokensOptions:
        if self.masked + self.random > 1:
            raise ValueError(f"masked + random is {self.masked + self.random:g}, above 1")
        if len({self.view, *self.others}) <= len(self.others):
            raise ValueError(f"a view is named twice: {', '.join((self.view, *self.others))}")
        return self


class BatchNormMlpOptions(TransformOptions):
    """Options of ``batch-norm-mlp``."""

    wide: Annotated[int, Field(ge=1, le=2**16)] | None = None
    """Size of the inner layer; by default twice the vectors'."""
