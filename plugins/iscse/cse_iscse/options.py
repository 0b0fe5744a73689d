"""Options of IS-CSE's miners."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from cse_core.options import MinerOptions


class SmoothingOptions(MinerOptions):
    """What both miners accept."""

    view: str = "positive"
    """View whose vectors are smoothed and kept in the buffer."""
    size: Annotated[int, Field(ge=2, le=2**20)] = 1024
    """Vectors of earlier steps in the buffer; the oldest are dropped first."""
    start: Literal["full", "at-once"] = "full"
    """full: start when the buffer is full (public code); at-once: start with what it holds."""


class KnnOptions(SmoothingOptions):
    """Options of ``knn-smoothing``."""

    k: Annotated[int, Field(ge=1)] = 16
    """Neighbours of a sentence."""
    beta: Annotated[float, Field(gt=0)] = 2.0
    """Temperature of the attention over the sentence and its neighbours."""
    exclude: Literal["rank", "row", "batch"] = "rank"
    """What does not count as a neighbour. rank: the nearest vector, its own of this step (public
    code); row: every vector of its own row of the data; batch: every vector of this step."""

    @model_validator(mode="after")
    def _fewer_than_the_buffer_holds(self) -> KnnOptions:
        if self.k >= self.size:
            raise ValueError(f"k = {self.k} neighbours need a larger buffer: set size above k")
        return self


class KmeansOptions(SmoothingOptions):
    """Options of ``kmeans-smoothing``."""

    clusters: Annotated[int, Field(ge=2)] = 64
    """Clusters of the buffer (Table 3)."""
    gamma: Annotated[float, Field(ge=0, le=1)] = 0.5
    """Share of the sentence's own vector; the rest is its centroid's. The paper gives no value."""
    iterations: Annotated[int, Field(ge=1, le=10_000)] = 1
    """Iterations per step, starting from the last step's centroids."""
    first_iterations: Annotated[int, Field(ge=1, le=10_000)] = 10
    """Iterations from the first, randomly drawn centroids."""

    @model_validator(mode="after")
    def _fewer_than_the_buffer_holds(self) -> KmeansOptions:
        if self.clusters > self.size:
            raise ValueError(
                f"{self.clusters} clusters need as many vectors: set size to that or more"
            )
        return self
