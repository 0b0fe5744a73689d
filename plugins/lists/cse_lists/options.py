"""Options of the parts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from cse_core.options import LossOptions, StoreOptions, Temperature


class DecayOptions(StoreOptions):
    """Options of ``gaussian-decay``."""

    view: str = "negative"
    """View of the hard negatives."""
    branch: str = "frozen"
    """Branch of the frozen model; its model is an option of the branch: branch.frozen.model."""
    level: Literal["sentence"] = "sentence"
    """Hard negatives are whole texts."""
    temperature: Temperature = 0.05
    """Temperature of the loss, by which both models' cosines are divided."""
    width: Annotated[float, Field(gt=0)] = 0.17
    """Standard deviation of the bell curve, in logits: alpha of the authors' code."""


class RankedOptions(LossOptions):
    """Options of ``ranked-sentences``."""

    target: str = "positive"
    """View of the lists: sentences in the order in which the language model ranks them."""
    teacher: str = "frozen"
    """Branch of the teacher; its model is an option of the branch: branch.frozen.model."""
    temperature: Temperature = 0.05
    """The model's similarities are divided by it."""
    teacher_temperature: Temperature = 0.05
    """The teacher's similarities are divided by it."""
    omega: Annotated[float, Field(ge=0)] = 0.5
    """Weight of the language model's order beside the teacher's similarities."""
    level: Literal["sentence"] = "sentence"
    """Lists are of whole texts."""
    directions: Literal["one"] = "one"
    """Every sentence of a list ranks all of them."""
    negatives: Literal["none"] = "none"
    """A list holds only its own sentences."""
    similarity: Literal["cosine"] = "cosine"
    """Sentences are compared by their cosines."""
