"""Options of the parts of Contrastive Tension."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from cse_core.options import BranchOptions, LossOptions, Temperature


class TwinOptions(BranchOptions):
    """Options of ``twin``."""

    embeddings: Literal["copied"] = "copied"
    """Each encoder trains its own word embeddings."""


class TensionOptions(LossOptions):
    """Options of ``tension``."""

    similarity: Literal["cosine", "dot"] = "dot"
    """Similarity of two vectors, the logit that they are of one text."""
    different: Annotated[int, Field(ge=1, le=2**16)] = 7
    """Pairs of different texts for each pair of identical ones (K)."""
    pairs: Literal["paper", "published"] = "paper"
    """paper: each anchor is compared with its own text and with K others; published: of K + 1
    anchors one is compared with its own text, each of the rest with one other."""
    level: Literal["sentence"] = "sentence"
    """Pairs are of whole texts."""


class LearnedInfonceOptions(LossOptions):
    """Options of ``learned-infonce``."""

    start: Temperature = 0.05
    """Temperature at the start; its logarithm is learned."""
