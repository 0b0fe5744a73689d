"""A teacher's list distilled: ListNet and ListMLE."""

from __future__ import annotations

import torch
from torch import Tensor

from cse_core.functional import reduce_terms
from cse_core.parts import Loss
from cse_core.types import Batch, LossOutput, Negatives, Positives, StepContext
from cse_rankcse.lists import lists, log_shares
from cse_rankcse.options import ListMleOptions, TaughtOptions

PUBLISHED_EPS = 1e-7
PUBLISHED_PADDING = -1.0


class ListNet(Loss):
    """``- sum_j softmax(T_i / t3)_j log softmax(S_i / t2)_j``: ListNet (Cao et al., 2007).

    S_i are the model's cosines of anchor i with all targets of the batch, T_i the weighted sum of
    the teachers'. The public code has no own positive in the list (``own = false``), and one
    temperature for both.
    """

    options: TaughtOptions

    def __call__(
        self, batch: Batch, targets: Positives, negatives: Negatives, ctx: StepContext
    ) -> LossOutput:
        """Return the mean (or sum) over the anchors that have a positive."""
        student, teacher, seen = lists(batch, targets, ctx, self.options)
        shares = log_shares(teacher, seen).exp()
        terms = -(shares * log_shares(student, seen).masked_fill(~seen, 0.0)).sum(dim=1)
        return LossOutput(reduce_terms(_counted(terms, targets), targets, self.options.reduction))


class ListMle(Loss):
    """``- log P(order of T_i | S_i / t2)`` of the Plackett-Luce model: RankCSE's ListMLE.

    Xia et al., 2008: places are filled from the teachers' first to their last, each by a softmax
    over what is left; their sum is the loss of an anchor. Equal entries of a teacher keep the order
    of the batch, where the public code draws one.
    """

    options: ListMleOptions

    def __call__(
        self, batch: Batch, targets: Positives, negatives: Negatives, ctx: StepContext
    ) -> LossOutput:
        """Return the mean (or sum) over the anchors that have a positive."""
        student, teacher, seen = lists(batch, targets, ctx, self.options)
        make = list_mle if self.options.variant == "paper" else published_list_mle
        terms = make(student, teacher, seen)
        return LossOutput(reduce_terms(_counted(terms, targets), targets, self.options.reduction))


def list_mle(student: Tensor, teacher: Tensor, seen: Tensor) -> Tensor:
    """Return ``[A]`` losses of ``[A, N]`` lists; what is not seen has no place.

    It is sorted before the first place, so that no sum over what is left holds it.
    """
    order = teacher.masked_fill(~seen, torch.inf).argsort(dim=1, descending=True, stable=True)
    logits, valid = student.gather(1, order), seen.gather(1, order)
    left = logits.flip(1).logcumsumexp(dim=1).flip(1)
    return (left - logits).masked_fill(~valid, 0.0).sum(dim=1)


def published_list_mle(student: Tensor, teacher: Tensor, seen: Tensor) -> Tensor:
    """Return ``[A]`` losses as the public code computes them.

    Args:
        student: ``[A, N]`` logits of the model.
        teacher: ``[A, N]``; an entry of exactly -1 is left out, as if it were padding.
        seen: ``[A, N]`` what is in each list.
    """
    seen = seen & (teacher != PUBLISHED_PADDING)
    order = teacher.masked_fill(~seen, -torch.inf).argsort(dim=1, descending=True, stable=True)
    logits, valid = student.gather(1, order), seen.gather(1, order)
    largest = logits.masked_fill(~valid, -torch.inf).amax(dim=1, keepdim=True)
    logits = (logits - largest.masked_fill(largest.isinf(), 0.0)).masked_fill(~valid, -torch.inf)
    left = logits.exp().flip(1).cumsum(dim=1).flip(1)
    terms = (left + PUBLISHED_EPS).log() - logits.masked_fill(~valid, 0.0)
    return terms.masked_fill(~valid, 0.0).sum(dim=1)


def _counted(terms: Tensor, targets: Positives) -> Tensor:
    """Return terms, zero for an anchor without any positive, which the mean does not count."""
    if targets.weights is None:
        return terms
    return terms * (targets.weights.sum(dim=1) > 0)
