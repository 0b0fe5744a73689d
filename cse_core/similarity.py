"""Similarities of vectors, in the precision that they come in."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

Similarity = Literal["cosine", "dot"]
EPS = 1e-8
"""Smallest norm that a cosine divides by, that of torch's cosine similarity."""


def unit(vectors: Tensor) -> Tensor:
    """Return vectors of length one; a zero vector stays zero."""
    lengths: Tensor = vectors.norm(dim=-1, keepdim=True)
    return vectors / lengths.clamp_min(EPS)


def similarity(left: Tensor, right: Tensor, kind: Similarity = "cosine") -> Tensor:
    """Return ``[A, N]`` similarities of every row of ``[A, D]`` with every row of ``[N, D]``."""
    if kind == "cosine":
        left, right = unit(left), unit(right)
    scores: Tensor = left @ right.T
    return scores


def paired_similarity(left: Tensor, right: Tensor, kind: Similarity = "cosine") -> Tensor:
    """Return ``[A, P]`` similarities of each row of ``[A, D]`` with its own of ``[A, P, D]``."""
    if kind == "cosine":
        left, right = unit(left), unit(right)
    return torch.einsum("ad,apd->ap", left, right)
