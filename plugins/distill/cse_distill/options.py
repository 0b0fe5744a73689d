"""Options of the losses of a teacher."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from cse_core.options import LossOptions, Temperature


class TaughtOptions(LossOptions):
    """What each of the losses accepts."""

    teacher: str = "frozen"
    """Branch of the teacher; its model is an option of the branch: branch.frozen.model."""
    level: Literal["sentence"] = "sentence"
    """A teacher reads whole texts."""
    directions: Literal["one"] = "one"
    """A teacher defines both directions."""
    negatives: Literal["none"] = "none"
    """The option candidates names what a text is compared with."""

    @field_validator("teacher")
    @classmethod
    def _is_another(cls, value: str) -> str:
        if value == "online":
            raise ValueError("must be another branch: online is the model in training")
        return value


class MseOptions(TaughtOptions):
    """Options of ``mse``."""

    sides: Literal["both", "anchor"] = "both"
    """Texts whose vectors are taught: anchors and targets, or only anchors."""
    similarity: Literal["cosine"] = "cosine"
    """Not used: metric names the distance of two vectors."""
    metric: Literal["mse", "squared", "cosine"] = "mse"
    """Distance of two vectors: the mean of their squared differences, their sum, or 1 - cosine."""
    dimension: Annotated[int, Field(ge=1, le=2**16)] | None = None
    """Dimension of the teacher's vectors if it is not the model's: a linear layer, trained with the
    loss and not saved with the model, maps to it."""

    @model_validator(mode="after")
    def _maps_whole_vectors(self) -> MseOptions:
        if self.dimension is not None and self.dimensions:
            raise ValueError("dimension maps whole vectors, dimensions compares their beginnings")
        return self


class ListOptions(TaughtOptions):
    """What ``margin-mse`` and ``kl`` accept."""

    similarity: Literal["cosine", "dot"] = "dot"
    """Similarity of two vectors, for model and teacher."""
    candidates: Literal["own", "batch", "list"] = "own"
    """What a text is compared with besides its positive: its own texts in views of role negative,
    or all positives and negatives of the batch. list: its own positives and negatives are one list,
    in which no positive comes first."""
    scores: tuple[str, ...] = ()
    """Columns with the teacher's scores, in place of its branch: that of the positive, then one for
    each view of ``views``; beside lists of texts they hold lists. A single column of margin-mse
    holds margins, but of a list scores."""
    views: tuple[str, ...] = ()
    """Views of negatives that are compared; by default all of the run."""

    @model_validator(mode="after")
    def _scores_are_of_own_texts(self) -> ListOptions:
        if self.scores and self.candidates == "batch":
            raise ValueError(
                "scores are those of a text's own candidates: candidates = own or list"
            )
        return self


class KlOptions(ListOptions):
    """Options of ``kl``."""

    temperature: Temperature = 1.0
    """The model's similarities are divided by it; the loss is multiplied by its square."""
    teacher_temperature: Temperature | None = None
    """The teacher's similarities are divided by it; by default ``temperature``."""
