"""Options of the built-in parts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from cse_core.options import (
    BranchOptions,
    HeadOptions,
    LossOptions,
    ModelName,
    Options,
    PoolerOptions,
    Temperature,
)
from cse_core.schedule import Schedule


class MeanOptions(PoolerOptions):
    """Options of ``mean``."""

    include_prompt: bool = True
    """Whether the mean includes the prompt and the special tokens before it."""


class LastTokenOptions(PoolerOptions):
    """Options of ``last-token``."""

    end: bool = True
    """End every row with the tokenizer's end token, if the tokenizer does not."""


class FirstLastOptions(PoolerOptions):
    """Options of ``first-last``."""

    first: Literal["embeddings", "layer"] = "embeddings"
    """embeddings: what enters the first layer (SimCSE's paper, IS-CSE's code); layer: its output
    (SimCSE's code since 2022)."""


class TokenVectorsOptions(PoolerOptions):
    """Options of ``token-vectors``."""

    special: bool = True
    """Whether special tokens have vectors, as in ColBERT."""
    skip: Literal["none", "punctuation"] = "none"
    """punctuation: signs of punctuation have no vectors in documents, as in ColBERT."""


class MlpOptions(HeadOptions):
    """Options of ``mlp``."""

    layers: Annotated[int, Field(ge=1, le=64)] = 1
    """Linear layers, each followed by the activation."""
    dimension: Annotated[int, Field(ge=1, le=2**16)] | None = None
    """Size of its output; by default that of its input."""
    like: str = ""
    """Branch, such as a teacher, whose vectors have the size that dimension takes by default."""
    activation: Literal[
        "tanh", "relu", "gelu", "none", "sigmoid", "silu", "elu", "leaky-relu", "softplus"
    ] = "tanh"
    """Function after each linear layer."""
    bias: bool = True
    """Whether the linear layers have a bias."""
    start: Literal["random", "pooler"] = "random"
    """Weights of the first layer: random, or those of the encoder's own trained pooler."""

    @model_validator(mode="after")
    def _pooler_has_a_bias(self) -> MlpOptions:
        if self.start == "pooler" and not self.bias:
            raise ValueError("start = pooler needs bias = true: the encoder's pooler has one")
        return self


class InfonceOptions(LossOptions):
    """Options of ``infonce``."""

    temperature: Temperature = 0.05
    """Softmax temperature: similarities are divided by it."""


def _share(value: Schedule) -> Schedule:
    low, high = value.bounds
    if low < 0 or high > 1:
        raise ValueError("must stay between 0 and 1")
    return value


class GroupedOptions(Options):
    """Options of ``grouped``."""

    column: str = "group"
    """Column of the labels: a batch has rows of one, as far as there are enough."""


class EmaOptions(BranchOptions):
    """Options of ``ema``."""

    decay: Annotated[Schedule, AfterValidator(_share)] = Schedule("constant", 0.995, 0.995)
    """Share of the old weights kept at each step; a schedule over the round."""


class OnlineOptions(BranchOptions):
    """Options of ``online``."""

    @field_validator("copies", "embeddings")
    @classmethod
    def _copies_nothing(cls, value: str, info: ValidationInfo) -> str:
        if value != BranchOptions.model_fields[str(info.field_name)].default:
            raise ValueError("has no effect: an online branch is the encoder itself, not a copy")
        return value


class FrozenOptions(BranchOptions):
    """Options of ``frozen``."""

    mode: Literal["train", "eval"] = "eval"
    """train: dropout on; eval: dropout off."""
    model: ModelName = "self"
    """Model by name or folder, which encodes as its folder says; self: the run's own encoder at its
    start."""
    cache: bool = False
    """Encode each text once, before the first step: for a teacher by name without dropout."""
    pooler: bool = False
    """Use the state of its first token and its own trained pooler (dense, tanh)."""

    @field_validator("embeddings")
    @classmethod
    def _own_embeddings(cls, value: str) -> str:
        if value == "shared":
            raise ValueError("cannot be shared: a frozen branch keeps its own embeddings")
        return value

    @model_validator(mode="after")
    def _pooler_of_another(self, info: ValidationInfo) -> FrozenOptions:
        if self.cache and (self.model == "self" or self.mode == "train"):
            path = (info.context or {}).get("path", "branch.NAME")
            do = "model NAME" if self.model == "self" else "mode eval"
            what = "cache needs another model, and mode = eval: vectors that stay the same"
            raise ValueError(f"{what}; add --{path}.{do}")
        if self.pooler and self.model == "self":
            raise ValueError("pooler needs another model: model = self uses the run's heads")
        return self
