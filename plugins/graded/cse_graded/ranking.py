"""One logarithm over all pairs of pairs that a loss has in the wrong order (CoSENT)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from cse_core.parts import Loss
from cse_core.types import SENTENCE, Batch, LossOutput, Negatives, Positives, StepContext
from cse_graded.options import GradedOptions


class Ranking(Loss):
    """``log(1 + sum over y_i > y_k of exp((s_k - s_i) / t))``, over pairs of texts.

    CoSENT (Su, 2022): s is the similarity of a pair and y its score, of which the order alone
    counts. Pairs of one score give no term; a batch of one score has loss zero. Over several
    processes all pairs of the batch are ranked, where the public codes rank those of a device.
    """

    options: GradedOptions

    def of_pairs(self, left: Tensor, right: Tensor) -> Tensor:
        """Return ``[A, P]`` similarities of ``[A, D]`` with ``[A, P, D]``."""
        raise NotImplementedError

    def __call__(
        self, batch: Batch, targets: Positives, negatives: Negatives, ctx: StepContext
    ) -> LossOutput:
        """Return the loss of the batch, over the pairs whose positive has a weight."""
        similar, scores, present = _pairs(self.of_pairs, batch, targets, ctx, self.options)
        return LossOutput(ranked(similar / self.options.temperature, scores, present))


def ranked(logits: Tensor, scores: Tensor, there: Tensor) -> Tensor:
    """Return the loss of ``[N]`` pairs.

    Sorted by score, all pairs below one of them are a prefix, whose sum is cumulative: no matrix
    of pairs of pairs. A pair that is not there comes last and gives no term.
    """
    scores = scores.to(logits.dtype).masked_fill(~there, torch.inf)
    ordered, order = torch.sort(scores, stable=True)
    sums = torch.logcumsumexp(logits[order], dim=0)
    below = torch.searchsorted(ordered, scores)  # how many have a lower score, each
    counts = there & (below > 0)
    terms = (sums[(below - 1).clamp_min(0)] - logits).masked_fill(~counts, -torch.inf)
    return torch.cat([logits.new_zeros(1), terms]).logsumexp(dim=0)


def _pairs(
    similarity: Callable[[Tensor, Tensor], Tensor],
    batch: Batch,
    targets: Positives,
    ctx: StepContext,
    options: GradedOptions,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``[N]`` similarities, scores, and which pairs are there."""
    similar = similarity(batch.anchors, targets.vectors)  # [A, P]
    ones = torch.ones_like(similar[:, 0])
    scores = ones if options.column is None else ctx.values(options.column)[batch.owner]
    present = torch.ones_like(similar, dtype=torch.bool)
    if targets.weights is not None:
        present = targets.weights > 0
    blocks = [(similar, scores.unsqueeze(1).expand_as(similar), present)]
    for name, role in batch.roles.items() if options.own_negatives else ():
        rows = batch.views.get(name, {}).get(SENTENCE) if role == "negative" else None
        if rows is not None and len(rows):
            same = rows.owner.unsqueeze(1) == batch.owner.unsqueeze(0)  # [N, A]
            first = same.to(torch.uint8).argmax(dim=1)
            similar = similarity(batch.anchors[first], rows.vectors.unsqueeze(1))
            blocks.append((similar, 1 - scores[first].unsqueeze(1), same.any(dim=1, keepdim=True)))
    similar, scores, present = (
        torch.cat([e.flatten() for e in column]) for column in zip(*blocks, strict=True)
    )
    return similar, scores, present
