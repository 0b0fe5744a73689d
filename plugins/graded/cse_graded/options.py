"""Options of the losses over graded pairs, classes and triplets."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from cse_core.options import LossOptions, Temperature


class GradedOptions(LossOptions):
    """Options of ``angle``, and with a similarity those of ``cosent``."""

    column: str | None = "score"
    """Column with the score of each pair; none: every pair has score 1, which needs
    own_negatives."""
    own_negatives: bool = False
    """Rank each anchor with its own texts of views of role negative too; such a pair has the score
    1 - y, where y between 0 and 1 is that of the anchor and its positive."""
    temperature: Temperature = 0.05
    """Similarities are divided by it; 0.05 is a scale of 20."""
    level: Literal["sentence"] = "sentence"
    """Scores are of whole texts."""
    directions: Literal["one"] = "one"
    """A pair has one score, whichever text comes first."""
    negatives: Literal["none"] = "none"
    """Pairs compete with pairs: no text is a negative."""
    reduction: Literal["mean"] = "mean"
    """One logarithm over all pairs of the batch: no mean, and its size grows with their number."""

    @model_validator(mode="after")
    def _has_two_scores(self) -> GradedOptions:
        if self.column is None and not self.own_negatives:
            raise ValueError("column = none gives every pair one score: set own_negatives = true")
        return self


class AngleOptions(GradedOptions):
    """Options of ``angle``."""

    similarity: Literal["cosine"] = "cosine"
    """Has no effect: the angle's similarity is its own."""


class ClassOptions(LossOptions):
    """What losses over classes accept."""

    column: str = "label"
    """Column with the class of each text: any text, of which equal ones are one class."""
    views: Literal["both", "anchor"] = "both"
    """Texts of a class: anchors and their targets, or only anchors."""
    level: Literal["sentence"] = "sentence"
    """Classes are of whole texts."""
    directions: Literal["one"] = "one"
    """A class has no direction."""
    reduction: Literal["mean"] = "mean"
    """The mean is over texts, of which some are anchors."""


class SupConOptions(ClassOptions):
    """Options of ``supcon``."""

    temperature: Temperature = 0.07
    """Similarities are divided by it."""
    contrast: Literal["all", "one"] = "all"
    """Texts that are compared with all others: all, or one view alone, the anchors (the authors'
    contrast_mode)."""
    negatives: Literal["none"] = "none"
    """Texts of other classes are the negatives."""


class TripletOptions(ClassOptions):
    """Options of ``triplet``."""

    column: str | None = None
    """Column of classes: batch-hard triplets. None: the positive and the negatives of a text."""
    distance: Literal["euclidean", "cosine"] = "euclidean"
    """Euclidean distance, or 1 - cosine."""
    margin: Annotated[float, Field(ge=0)] = 5.0
    """How much farther than the positive a negative should be."""
    triplets: Literal["own", "hardest"] = "own"
    """Negatives of a text: its own, or the nearest of all that the loss sees."""
    similarity: Literal["cosine"] = "cosine"
    """Has no effect: distance says how texts are compared."""
