"""Options of the losses over graded pairs."""

from __future__ import annotations

from typing import Literal

from pydantic import model_validator

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
