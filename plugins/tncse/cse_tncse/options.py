"""Options of the parts of TNCSE."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from cse_core.options import BranchOptions, LossOptions, ModelName, Temperature


class SecondOptions(BranchOptions):
    """Options of ``second``."""

    embeddings: Literal["copied"] = "copied"
    """Each encoder trains its own word embeddings."""
    model: ModelName | None = None
    """Model that the second encoder starts from, of the run's own tokenizer and size; by default
    the run's own."""


class OfTwoEncoders(LossOptions):
    """What both losses accept: where the second encoder's vectors are."""

    anchor_view: str = "second-anchor"
    """View of the anchors' texts from the second encoder."""
    target_view: str = "second-positive"
    """View of the targets' texts from the second encoder."""


class TwoEncodersOptions(OfTwoEncoders):
    """Options of ``two-encoders``."""

    negatives: Literal["in-batch", "none"] = "in-batch"
    """In-batch negatives only: stores keep no vectors of this kind."""
    in_batch: Literal["target", "anchor", "both"] = "both"
    """In-batch negatives: the other targets, the other anchors, or both."""
    directions: Literal["one", "both"] = "both"
    """both: the mean of anchors to targets and targets to anchors."""
    temperature: Temperature = 0.05
    """Softmax temperature: similarities are divided by it."""
    second: Annotated[float, Field(ge=0)] = 1.0
    """Weight of InfoNCE among the second encoder's vectors."""
    across: Annotated[float, Field(ge=0)] = 1.0
    """Weight of InfoNCE from the first encoder's anchors to the second's vectors."""


class NormConstraintOptions(OfTwoEncoders):
    """Options of ``norm-constraint``."""

    directions: Literal["one", "both"] = "both"
    """both: the mean of anchors to targets and targets to anchors."""
    negatives: Literal["none"] = "none"
    """There are none."""
    norms: str = "pooled"
    """Level whose vectors have their norms compared."""
    ratio: Literal["paper", "published"] = "paper"
    """paper: the distance over the sum of the norms; published: half of it."""
    floor: Annotated[float, Field(gt=0, le=1)] = 1e-4
    """Similarity of a pair whose similarity is below zero; it then has no gradient."""
