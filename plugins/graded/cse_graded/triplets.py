"""Triplets: a positive nearer than a negative by a margin."""

from __future__ import annotations

import torch
from torch import Tensor

from cse_core.functional import mean_over_positives, reduce_terms, unit
from cse_core.parts import Loss
from cse_core.types import Batch, LossOutput, Negatives, Positives, StepContext
from cse_graded.classes import texts_of_classes
from cse_graded.options import TripletOptions

TINY = 1e-16
"""Smallest square of a distance whose root has a gradient."""


class Triplet(Loss):
    """``max(0, d(a, p) - d(a, n) + margin)``, d the Euclidean or the cosine distance.

    Schroff et al., CVPR 2015. ``own``: each of a text's own negatives, their mean; ``hardest``: the
    nearest of all negatives. The weight of a negative is that of its term. With a column of classes
    the triplets are batch-hard (Hermans et al., 2017): of each text the farthest of its class and
    the nearest of another, over the texts that have both.
    """

    options: TripletOptions

    def __call__(
        self, batch: Batch, targets: Positives, negatives: Negatives, ctx: StepContext
    ) -> LossOutput:
        """Return the mean over the texts that have a positive."""
        options = self.options
        if options.column is not None:
            vectors, classes = texts_of_classes(batch, targets, ctx, options)
            terms, counted = self._batch_hard(vectors, classes)
            total = terms.masked_fill(~counted, 0.0).sum()
            return LossOutput(total / counted.sum().clamp_min(1))
        near = distances(batch.anchors.unsqueeze(1), targets.vectors, options.distance)  # [A, P]
        far = distances(batch.anchors, negatives.vectors, options.distance)  # [A, N]
        seen = ~negatives.mask & (negatives.log_weights > -torch.inf)
        weights = negatives.log_weights.exp()
        if options.triplets == "own":
            own = torch.zeros_like(seen)
            for name, block in negatives.spans():
                of_view = batch.roles.get(name) == "negative"
                same = negatives.row[block].unsqueeze(0) == batch.row.unsqueeze(1)
                own[:, block] = same & of_view
            seen = seen & own
        elif seen.shape[1]:
            nearest = far.masked_fill(~seen, torch.inf).argmin(dim=1, keepdim=True)
            far, seen, weights = (x.gather(1, nearest) for x in (far, seen, weights))
        terms = (near.unsqueeze(2) - far.unsqueeze(1) + options.margin).relu()  # [A, P, N]
        terms = (terms * (weights * seen).unsqueeze(1)).sum(dim=2)
        terms = terms / seen.sum(dim=1, keepdim=True).clamp_min(1)
        value = reduce_terms(mean_over_positives(terms, targets), targets, options.reduction)
        return LossOutput(value)

    def _batch_hard(self, vectors: Tensor, classes: Tensor) -> tuple[Tensor, Tensor]:
        """Return ``[M]`` terms, and which texts have another of their class and of another one."""
        apart = distances(vectors, vectors, self.options.distance)
        there = classes >= 0
        same = classes.unsqueeze(1) == classes.unsqueeze(0)
        itself = torch.eye(len(vectors), dtype=torch.bool, device=vectors.device)
        one, other = same & there & ~itself, ~same & there
        farthest = apart.masked_fill(~one, 0.0).amax(dim=1)
        nearest = apart.masked_fill(~other, torch.inf).amin(dim=1)
        counted = one.any(dim=1) & other.any(dim=1) & there
        nearest = nearest.masked_fill(~counted, 0.0)
        return (farthest - nearest + self.options.margin).relu(), counted


def distances(left: Tensor, right: Tensor, kind: str) -> Tensor:
    """Return ``[A, N]`` distances of ``[A, D]`` from ``[N, D]``, or of ``[A, 1, D]`` ``[A, P]``."""
    if kind == "cosine":
        left, right = unit(left), unit(right)
    paired = left.dim() == 3
    products = (left * right).sum(dim=-1) if paired else left @ right.T
    if kind == "cosine":
        return 1 - products
    squares = left.square().sum(dim=-1), right.square().sum(dim=-1)
    one, other = squares if paired else (squares[0].unsqueeze(1), squares[1].unsqueeze(0))
    apart = one + other - 2 * products
    return torch.where(apart > TINY, apart, TINY).sqrt()
