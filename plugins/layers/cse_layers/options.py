"""Options of the parts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from cse_core.options import LossOptions, PoolerOptions, Temperature


class LayerVectorsOptions(PoolerOptions):
    """Options of ``layer-vectors``."""

    tokens: Literal["first", "all"] = "all"
    """first: the state of the first token; all: the mean over a row's tokens."""


class EveryLayerOptions(LossOptions):
    """Options of ``every-layer``."""

    negatives: Literal["in-batch", "none"] = "in-batch"
    """In-batch negatives only: stores keep no vectors of this kind."""
    temperature: Temperature = 0.05
    """Softmax temperature: similarities are divided by it."""
    layers: Annotated[int, Field(ge=0, le=1000)] = 1
    """Layers that are drawn for a step; 0: all but the last."""
    weighting: Literal["uniform", "log", "linear"] = "uniform"
    """Weight of layer i: 1, 1 / (1 + ln(1 + i)), or 1 / (1 + i)."""
    align: Annotated[float, Field(ge=0)] = 1.0
    """Weight of the divergence from the last layer's vectors."""
    align_temperature: Temperature = 0.3
    """Temperature of the softmax over the numbers of a vector in that divergence."""
