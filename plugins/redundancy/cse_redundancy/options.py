"""Options of the losses without negatives and of their expander."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator

from cse_core.options import LossOptions, TransformOptions

Coefficient = Annotated[float, Field(ge=0)]
Size = Annotated[int, Field(ge=1, le=2**16)]


class StatisticsOptions(LossOptions):
    """What each of the losses accepts."""

    level: Literal["sentence"] = "sentence"
    """Statistics are those of whole texts."""
    similarity: Literal["dot"] = "dot"
    """Vectors are compared as they are."""
    directions: Literal["one"] = "one"
    """Both views are compared in one way."""
    negatives: Literal["none"] = "none"
    """Statistics over the batch take the place of negatives."""
    reduction: Literal["mean"] = "mean"
    """Statistics do not add up over anchors."""


class TargetOptions(StatisticsOptions):
    """What ``barlow-twins`` and ``vicreg`` accept."""

    teacher: str | None = None
    """Branch of the target network, such as ``ema``: each view is compared with the other view by
    this branch, without gradient, and both losses are added (UNSEE). None: the views themselves are
    compared."""

    @field_validator("teacher")
    @classmethod
    def _is_another(cls, value: str | None) -> str | None:
        if value == "online":
            raise ValueError("must be another branch: online is the model in training")
        return value


class BarlowTwinsOptions(TargetOptions):
    """Options of ``barlow-twins``."""

    off_diagonal: Coefficient = 0.0051
    """Weight of the correlations of different dimensions (lambda)."""
    affine: bool = False
    """Scale and shift the normalised dimensions by learned weights, as UNSEE's code does."""


class VicregOptions(TargetOptions):
    """Options of ``vicreg``."""

    invariance: Coefficient = 25.0
    """Weight of the distance between both vectors of a text (lambda)."""
    variance: Coefficient = 25.0
    """Weight of the deviations below 1 (mu)."""
    covariance: Coefficient = 1.0
    """Weight of the covariances of different dimensions (nu)."""
    variant: Literal["published", "paper"] = "published"
    """published: as the public code, with squared distances averaged over dimensions, and half of
    each view's variance term; paper: distances are sums over dimensions, variance terms whole."""


class SigregOptions(StatisticsOptions):
    """Options of ``sigreg``."""

    share: Annotated[float, Field(ge=0, le=1)] = 0.02
    """Share of the regulariser; that of the distance between the views is the rest (lambda)."""
    slices: Size = 256
    """Random directions on which the vectors are projected, drawn again in each step."""
    bound: Annotated[float, Field(gt=0, le=100)] = 3.0
    """Characteristic functions are compared from minus this to this."""
    knots: Annotated[int, Field(ge=2, le=10_000)] = 17
    """Points between 0 and the bound."""


class ExpanderOptions(TransformOptions):
    """Options of ``expander``."""

    blocks: Annotated[int, Field(ge=1, le=64)] = 1
    """Blocks of three linear layers, one after the other."""
    wide: Size | None = None
    """Size of the inner layers; by default ten times the vectors'."""
    dimension: Size | None = None
    """Size of its output; by default the vectors'."""
    norms: Literal["both", "first"] = "both"
    """Batch normalisation behind both inner layers (Barlow Twins, VICReg), or behind the first
    alone (UNSEE)."""
