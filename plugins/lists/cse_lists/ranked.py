"""Lists that a language model ranked, learned by ListMLE."""

from __future__ import annotations

import torch
from torch import Tensor

from cse_core.functional import listed, reduce_terms, unit
from cse_core.parts import Loss
from cse_core.types import SENTENCE, Batch, LossOutput, Negatives, Positives, StepContext
from cse_lists.options import RankedOptions

EPS = 1e-7


class RankedSentences(Loss):
    """ListMLE of each sentence of a list over all of them, ordered by a teacher and by the list.

    He et al., 2025, as in the authors' code: with the teacher's similarities T, the order of row i
    is that of ``T_ij + sign log(omega |T_ij - T'_ij| + 1)``, where T' are the similarities with the
    sentences from i on, sorted, as they would be if the teacher had the list's order. A list is the
    text and the sentences of its target; the mean is over the sentences of a list, then over lists.
    """

    options: RankedOptions

    def __call__(
        self, batch: Batch, targets: Positives, negatives: Negatives, ctx: StepContext
    ) -> LossOutput:
        """Return the mean (or sum) over the texts that have a list."""
        options, count = self.options, targets.vectors.shape[1]
        there = torch.ones_like(targets.vectors[..., 0], dtype=torch.bool)
        if targets.weights is not None:
            there = targets.weights > 0
        frozen = [
            listed(ctx.vectors(view, options.teacher)[SENTENCE], batch.owner, batch.slot, many)
            for view, many in (("anchor", 1), (options.target, count))
        ]
        order = (~there).to(torch.uint8).argsort(dim=1, stable=True)  # gaps come last
        there = torch.cat([there.new_ones(len(there), 1), there.gather(1, order)], dim=1)
        logits, teacher = (
            _within(torch.cat([first, _ordered(more, order)], dim=1)) / temperature
            for first, more, temperature in (
                (batch.anchors.unsqueeze(1), targets.vectors, options.temperature),
                (frozen[0].vectors, frozen[1].vectors, options.teacher_temperature),
            )
        )
        teacher = teacher.to(logits.dtype)
        moved = by_order(teacher, there)
        wanted = teacher + moved.sign() * (options.omega * moved.abs()).log1p()
        rows = list_mle(logits, wanted, there.unsqueeze(1).expand_as(logits))  # [A, L]
        sizes = there.sum(dim=1)
        terms = rows.masked_fill(~there, 0.0).sum(dim=1) / sizes
        terms = terms * (sizes > 1)  # a text alone has no order
        return LossOutput(reduce_terms(terms, targets, options.reduction))


def by_order(teacher: Tensor, there: Tensor) -> Tensor:
    """Return ``[A, L, L]`` how far each similarity is from its place in the list's order.

    Row i, from column i on, is compared with its own values in descending order. What is less far
    down than its column's number is moved down, all else up, as in the authors' code, where the
    place counts from i and the column from the beginning of the list. The lower half mirrors the
    upper one.

    Args:
        teacher: ``[A, L, L]`` similarities.
        there: ``[A, L]`` which sentences a list has, the first ones.
    """
    place = torch.arange(teacher.shape[-1], device=teacher.device)
    upper = (place.unsqueeze(0) >= place.unsqueeze(1)) & there.unsqueeze(1) & there.unsqueeze(2)
    values, order = teacher.masked_fill(~upper, -torch.inf).sort(
        dim=-1, descending=True, stable=True
    )
    rank = order.argsort(dim=-1)
    behind = (place.unsqueeze(0) - place.unsqueeze(1)).clamp_min(0).expand_as(order)
    sign = torch.where(rank < place, -1.0, 1.0).to(teacher.dtype)
    moved = torch.where(upper, sign * (teacher - values.gather(-1, behind)).abs(), 0.0)
    return moved + moved.triu(1).transpose(-1, -2)


def list_mle(logits: Tensor, wanted: Tensor, there: Tensor) -> Tensor:
    """Return ``[..., L]`` losses of lists; the logarithms have 1e-7 added inside, as published."""
    order = wanted.masked_fill(~there, -torch.inf).argsort(dim=-1, descending=True, stable=True)
    logits, valid = logits.gather(-1, order), there.gather(-1, order)
    logits = logits - logits.masked_fill(~valid, -torch.inf).amax(dim=-1, keepdim=True)
    left = logits.exp().masked_fill(~valid, 0.0).flip(-1).cumsum(dim=-1).flip(-1)
    return ((left + EPS).log() - logits).masked_fill(~valid, 0.0).sum(dim=-1)


def _ordered(vectors: Tensor, order: Tensor) -> Tensor:
    return vectors.gather(1, order.unsqueeze(2).expand_as(vectors))


def _within(vectors: Tensor) -> Tensor:
    """Return ``[A, L, L]`` cosines of the vectors of each list."""
    vectors = unit(vectors)
    return vectors @ vectors.transpose(1, 2)
