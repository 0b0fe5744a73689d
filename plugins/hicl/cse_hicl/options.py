"""Options of HiCL's parts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from cse_core.options import LossOptions, MinerOptions, PoolerOptions, StoreOptions, Temperature

LEVEL = "segment"
"""The level of the slices."""


class SegmentsOptions(PoolerOptions):
    """Options of ``segments``."""

    length: Annotated[int, Field(ge=1)] = 32
    """Tokens of a segment; a text's last segment has the rest. The paper tried 16 to 40."""
    aggregate: Literal["weighted", "mean"] = "weighted"
    """How segments join to a sentence: weighted by their tokens (the paper), or equally."""
    wrap: Literal["segment", "sentence"] = "segment"
    """segment: content is cut, and each segment gets its own special tokens, which have no weight;
    sentence: the wrapped sentence is cut, so only its first segment begins with [CLS], and special
    tokens have weight."""
    join: Literal["after-heads", "before-heads"] = "after-heads"
    """Whether segments are joined into sentences after the heads or before them."""


class SameSequenceOptions(MinerOptions):
    """Options of ``same-sequence``."""

    level: str = LEVEL
    """Level at which it finds positives."""
    view: str = "positive"
    """View that the positives are taken from."""
    most: Annotated[int, Field(ge=2)] = 16
    """Most positives per segment: its own, then the next ones of its sentence, continuing at the
    first."""


def _of_slices(level: str) -> str:
    if level == "sentence":
        raise ValueError("a text is not a part of itself; name the level of its slices")
    return level


class AveragingOptions(StoreOptions):
    """Options of ``averaging``."""

    level: Annotated[str, AfterValidator(_of_slices)] = LEVEL
    """Level whose losses it serves."""


class EntailmentOptions(LossOptions):
    """Options of ``entailment``."""

    level: Annotated[str, AfterValidator(_of_slices)] = LEVEL
    """Level of its anchors, which are segments of the view anchor."""
    sentences: str = "anchor"
    """View whose sentences are targets and negatives: anchor (the paper), or positive, as in the
    other terms."""
    in_batch: Literal["target"] = "target"
    """Its negatives are the other sentences of that view."""
    directions: Literal["one"] = "one"
    """Only from segments to sentences."""
    negatives: Literal["none"] = "none"
    """Neither segments nor stores are among its negatives."""
    temperature: Temperature = 0.05
    """Softmax temperature: similarities are divided by it."""
