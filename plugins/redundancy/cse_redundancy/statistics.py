"""Pairs of vectors that a loss compares, and weighted statistics over them."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from cse_core.errors import CseError
from cse_core.types import SENTENCE, Batch, Positives, StepContext
from cse_redundancy.options import TargetOptions

NORM_EPS = 1e-5
"""Added to variances, as torch's batch normalisation does."""


def twins(anchors: Tensor, targets: Positives) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``[M, D]`` anchors, ``[M, D]`` positives, and ``[M, 1]`` weights, 1 for each anchor.

    An anchor without a positive has weight zero.
    """
    count, many, size = targets.vectors.shape
    weights = targets.weights
    if weights is None:
        weights = anchors.new_ones(count, many)
    weights = weights / weights.sum(dim=1, keepdim=True).clamp_min(torch.finfo(weights.dtype).tiny)
    left = anchors.repeat_interleave(many, dim=0)
    return left, targets.vectors.reshape(-1, size), weights.reshape(-1, 1).to(anchors.dtype)


def compared(
    batch: Batch, targets: Positives, ctx: StepContext, options: TargetOptions, name: str
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Yield what ``twins`` returns: of both views, or of each view with its teacher's other view.

    Raises:
        CseError: If the teacher's vectors have another dimension.
    """
    left, right, weights = twins(batch.anchors, targets)
    if options.teacher is None:
        yield left, right, weights
        return
    for student, view in ((left, options.target), (right, "anchor")):
        rows = ctx.vectors(view, options.teacher)[SENTENCE]
        by_sentence = rows.vectors.new_zeros(len(batch.rows), rows.vectors.shape[1])
        by_sentence = by_sentence.index_copy(0, rows.owner, rows.vectors)
        owner = batch.owner.repeat_interleave(len(left) // len(batch.owner))
        teacher = by_sentence[owner].to(student.dtype)
        if options.dimensions:  # the first numbers of both are compared
            teacher = teacher[:, : student.shape[1]]
        if teacher.shape[1] != student.shape[1]:
            raise CseError(
                f"{options.teacher} has vectors of {teacher.shape[1]} dimensions, the views of "
                f"{student.shape[1]}",
                where=f"loss.{name}.teacher",
                value=options.teacher,
                hint="give both the same dimension, such as that of transform.expander.dimension",
            )
        yield student, teacher, weights


def moments(rows: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Return ``[M, D]`` deviations from the weighted mean, and the sum of the weights.

    The sum is 1 at least, so that a batch without any positive divides by no zero.
    """
    total = weights.sum().clamp_min(1)
    return rows - (rows * weights).sum(dim=0) / total, total


def normalised(rows: Tensor, weights: Tensor) -> Tensor:
    """Return ``[M, D]`` with weighted mean 0 and variance 1 of each dimension."""
    apart, total = moments(rows, weights)
    variance = (apart.square() * weights).sum(dim=0) / total
    return apart * (variance + NORM_EPS).rsqrt()


def off_diagonal_square(matrix: Tensor) -> Tensor:
    """Return the sum of the squares of ``[D, D]`` without its diagonal."""
    return matrix.square().sum() - matrix.diagonal().square().sum()
