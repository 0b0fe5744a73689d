"""Options of MoCoSE's parts."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from cse_core.options import AugmenterOptions, HeadOptions, StoreOptions

MOST_KEYS = 2**20
"""Largest size of a queue: 3 GB of keys of 768 dimensions."""


class FgsmOptions(AugmenterOptions):
    """Options of ``fgsm``."""

    epsilon: Annotated[float, Field(gt=0)] = 0.05
    """Size of the step along the sign of the gradient."""
    relative: bool = True
    """true: epsilon is a share of each token's embedding, whose length changes by at most this
    share; false: added to each entry as it is."""
    gradient: Literal["fresh", "previous"] = "fresh"
    """fresh: this step's, which costs a second pass (Eq. 1); previous: the last step's, at the same
    place of the batch (the public code)."""


class TokenDropOptions(AugmenterOptions):
    """Options of ``token-drop``."""

    rate: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """Share of a row's places whose word embeddings become zero, rounded down, at least one."""
    places: Annotated[int, Field(ge=1, le=2**16)] | None = 32
    """Places of a row: this many, padding included (the public code); none: its own tokens."""


class ProjectorOptions(HeadOptions):
    """Options of ``projector``."""

    layers: Annotated[int, Field(ge=0, le=3)] = 1
    """Linear layers, each with layer norm and dropout; 0 passes vectors through."""
    dimension: Annotated[int, Field(ge=1, le=2**16)] | None = None
    """Size of its output; by default that of its input."""
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """Probability of dropping a value behind a layer norm."""


class PredictorOptions(ProjectorOptions):
    """Options of ``predictor``."""

    branches: Literal["all", "online"] = "online"
    """Branches whose vectors pass through it."""
    layers: Annotated[int, Field(ge=0, le=3)] = 2
    """Linear layers, all but the last with layer norm and dropout, the last with tanh; 0 passes
    vectors through."""


class QueueOptions(StoreOptions):
    """Options of ``queue``."""

    branch: str | None = "ema"
    """Branch that encodes them; none: the view's own."""
    size: Annotated[int, Field(ge=1, le=MOST_KEYS)] = 512
    """Keys that a loss sees once it is full (K)."""
    distance: Annotated[float, Field(gt=0)] | None = None
    """Traceable distance to aim for at the start, 1 / (1 - decay) + size / batch; sets the size."""
    first_fill: Annotated[int, Field(ge=0)] = 128
    """Random unit rows at the start, at most the size (K_start)."""
    growth: Literal["paper", "official"] = "paper"
    """paper: the first fill, then a batch more each step up to the size; official: as in the public
    code, which starts with twice the first fill and overshoots, or, with a first fill of 0, has
    only keys."""
    update: Literal["normal", "latest", "oldest"] = "normal"
    """normal: keys as they were stored; latest: encoded again in each step by the current branch;
    oldest: twice the size is held, and the older half used (Table 8)."""
    column: str | None = None
    """Column of the texts that latest encodes; by default that of the view."""

    @model_validator(mode="before")
    @classmethod
    def _fills_what_it_holds(cls, values: Any) -> Any:
        """Let the default fill of a small queue be its size; refuse a larger one."""
        size, first = values.get("size", 512), values.get("first_fill")
        if values.get("distance") is not None or not isinstance(size, int) or size < 1:
            return values
        holds = size * 2 if values.get("update") == "oldest" else size
        if isinstance(first, int) and first > holds:
            raise ValueError(
                f"first_fill {first} is more than the {holds} keys that it holds: "
                f"write first_fill = {holds} or less"
            )
        return {**values, "first_fill": holds} if first is None and holds < 128 else values

    @model_validator(mode="after")
    def _latest_needs_sentences(self) -> QueueOptions:
        if self.update == "latest" and self.level != "sentence":
            raise ValueError("update = latest encodes whole sentences: it needs level = sentence")
        return self
