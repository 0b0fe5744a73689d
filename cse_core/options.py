"""Options of parts: frozen pydantic models, and the options that every part of a kind has."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, get_args

from annotated_types import Le, Lt
from pydantic import (
    AfterValidator,
    BaseModel,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.fields import FieldInfo

from cse_core.schedule import Schedule

_LOCATION = "a file or a folder"
Location = Annotated[str, _LOCATION]
"""Text of an option that may name a file or a folder; ``run.toml`` stores its absolute path."""
_MODEL = "a model"
ModelName = Annotated[str, _LOCATION, _MODEL]
"""Location of an option that names another model, which encodes as its own folder says."""
LARGEST = 10**9
"""Largest number, of either sign, that an option without an upper bound of its own may have."""


class Options(BaseModel):
    """Base of every options model: frozen, no unknown names, each field described."""

    model_config = {"frozen": True, "extra": "forbid", "defer_build": True}

    @field_validator("*")
    @classmethod
    def _of_a_size_that_makes_sense(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse numbers beyond ``LARGEST`` where the field has no upper bound of its own."""
        bounds = cls.model_fields[str(info.field_name)].metadata
        if not any(isinstance(bound, Le | Lt) for bound in bounds):
            for item in value if isinstance(value, tuple) else (value,):
                ends = item.bounds if isinstance(item, Schedule) else (item,)
                if any(isinstance(end, int | float) and not abs(end) <= LARGEST for end in ends):
                    raise ValueError(f"must be a number of at most {LARGEST:,}")
        return value


def is_location(info: FieldInfo, what: str = _LOCATION) -> bool:
    """Check whether an option is a :data:`Location`, or holds some."""
    beside = (getattr(part, "__metadata__", ()) for part in get_args(info.annotation))
    return any(what in metadata for metadata in (info.metadata, *beside))


def models_named(options: Options) -> dict[str, str]:
    """Return the models that options name, by the names of the options."""
    named = {name: getattr(options, name) for name, info in type(options).model_fields.items()
             if is_location(info, _MODEL)}  # fmt: skip
    return {name: value for name, value in named.items() if value not in (None, "self")}


class AugmenterOptions(Options):
    """What every augmenter accepts."""

    views: tuple[str, ...] | None = None
    """Views that it changes; by default those of its record."""


class PoolerOptions(Options):
    """What every pooler stage accepts."""

    weights: Literal["new", "model"] = "new"
    """Where its own weights start: new, or those of its name in the model's folder."""


class HeadOptions(PoolerOptions):
    """What every head accepts."""

    keep: Literal["train", "always"] = "train"
    """train: dropped from the saved model; always: part of it."""
    branches: Literal["all", "online"] = "all"
    """Branches whose vectors pass through it."""
    level: str = "all"
    """Vectors that pass through it: all, row for the vector of each row, or those of a level."""


class TransformOptions(Options):
    """What every transform accepts."""

    level: str = "sentence"
    """Level whose vectors it changes."""


class MinerOptions(Options):
    """What every positive miner accepts."""

    level: str = "sentence"
    """Level at which it finds positives."""


class StoreOptions(Options):
    """What every negative store accepts."""

    level: str = "sentence"
    """Level whose losses it serves."""
    view: str = "positive"
    """View whose vectors it keeps."""
    branch: str | None = None
    """Branch that encodes them; by default the view's own."""


class LossOptions(Options):
    """What every loss accepts; the core handles all of it."""

    target: str = "positive"
    """Group of positives that it pulls towards the anchors."""
    level: str = "sentence"
    """Level of its rows."""
    weight: Schedule = Schedule("constant", 1.0, 1.0)
    """Weight of this loss in the sum."""
    similarity: Literal["cosine", "dot"] = "cosine"
    """Similarity of two vectors."""
    in_batch: Literal["target", "anchor", "both"] = "target"
    """In-batch negatives: the other targets, the other anchors, or both."""
    directions: Literal["one", "both"] = "one"
    """both: the mean of anchors to targets and targets to anchors."""
    negatives: Literal["all", "in-batch", "stored", "none"] | tuple[str, ...] = "all"
    """Negatives to use; names of stores: the batch and these stores."""
    reduction: Literal["mean", "sum"] = "mean"
    """Mean or sum over the anchors."""
    dimensions: tuple[Annotated[int, Field(ge=1, le=2**16)], ...] = ()
    """Matryoshka sizes: the loss is summed over vectors cut to each. Empty: whole vectors only."""
    dimension_weights: tuple[float, ...] = ()
    """Weights of these sizes; by default all 1."""
    only: dict[str, str] = Field(default_factory=dict)
    """Count only rows with this text in a column: ``only.group = "0"``."""
    same_document: Literal["keep", "mask"] = "keep"
    """mask: rows of the anchor's own document are not negatives."""
    same_text: Literal["keep", "mask"] = "mask"
    """mask: other rows with the anchor's text are not negatives."""
    same_sentence: Literal["keep", "mask"] = "mask"
    """keep: the other segments of the anchor's own sentence are negatives."""

    @model_validator(mode="after")
    def _a_weight_for_each_size(self) -> LossOptions:
        weights, sizes = len(self.dimension_weights), len(self.dimensions)
        if weights not in (0, sizes):
            raise ValueError(f"{weights} dimension_weights for {sizes} dimensions")
        return self


class TokenLossOptions(Options):
    """What every loss on token states accepts; the core handles all of it."""

    view: str = "anchor"
    """View whose token states it reads."""
    weight: Schedule = Schedule("constant", 1.0, 1.0)
    """Weight of this loss in the sum."""


class BranchOptions(Options):
    """What every branch accepts."""

    mode: Literal["train", "eval"] = "train"
    """train: dropout on; eval: dropout off."""
    copies: Literal["encoder", "encoder+heads"] = "encoder+heads"
    """What the branch copies."""
    embeddings: Literal["shared", "copied"] = "copied"
    """Share the embedding matrix of the online branch, or copy it."""


Temperature = Annotated[float, Field(ge=1e-4, le=1e5)]
"""A softmax temperature."""

PATIENCE_FORM = re.compile(r"([1-9][0-9]{0,8})(?: *(steps?|epochs?|evaluations?))?")
"""A patience, with its unit or without."""


def _checked_patience(value: int | str) -> int | str:
    if not PATIENCE_FORM.fullmatch(str(value)):
        raise ValueError(
            "must be a number of evaluations, or a number with its unit: 5 evaluations, "
            "20000 steps, 2 epochs"
        )
    return int(value) if str(value).isdecimal() else value


Patience = Annotated[int | str, AfterValidator(_checked_patience)]
"""A number of evaluations, or a text with the unit: ``20000 steps``, ``2 epochs``."""
