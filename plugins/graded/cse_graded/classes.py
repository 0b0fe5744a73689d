"""Texts of one class as positives of each other: supervised contrastive learning."""

from __future__ import annotations

import torch
from torch import Tensor

from cse_core.functional import similarity
from cse_core.parts import Loss
from cse_core.types import Batch, LossOutput, Negatives, Positives, StepContext
from cse_graded.options import ClassOptions, SupConOptions


def texts_of_classes(
    batch: Batch, targets: Positives, ctx: StepContext, options: ClassOptions
) -> tuple[Tensor, Tensor]:
    """Return ``[M, D]`` anchors and their positives that are there, and ``[M]`` their classes.

    Anchors come first. ``views = anchor`` leaves the positives out.
    """
    classes = ctx.values(options.column)[batch.owner]
    if options.views == "anchor":
        return batch.anchors, classes
    many = targets.vectors.shape[1]
    vectors = torch.cat([batch.anchors, targets.vectors.flatten(0, 1)])
    of_targets = classes.repeat_interleave(many)
    if targets.weights is not None:
        of_targets = of_targets.masked_fill(targets.weights.flatten() <= 0, -1)  # no class
    return vectors, torch.cat([classes, of_targets])


class SupCon(Loss):
    """``- 1/|P(i)| sum_(p in P(i)) log exp(z_i z_p / t) / sum_(a != i) exp(z_i z_a / t)``.

    Khosla et al., NeurIPS 2020, Eq. 2, L_out: P(i) are the other texts of the class of text i, the
    sum in the logarithm is over all other texts. The mean is over all texts, or the anchors; one
    without another of its class counts as zero, as in the authors' code, whose factor t / t_base is
    the weight of the loss.
    """

    options: SupConOptions

    def __call__(
        self, batch: Batch, targets: Positives, negatives: Negatives, ctx: StepContext
    ) -> LossOutput:
        """Return the mean over the texts."""
        vectors, classes = texts_of_classes(batch, targets, ctx, self.options)
        many = len(batch.anchors) if self.options.contrast == "one" else len(vectors)
        itself = torch.eye(many, len(vectors), dtype=torch.bool, device=vectors.device)
        there = classes >= 0
        same = (classes[:many].unsqueeze(1) == classes.unsqueeze(0)) & there & ~itself
        logits = similarity(vectors[:many], vectors, self.options.similarity)
        logits = logits / self.options.temperature
        lowest = torch.finfo(logits.dtype).min / 2
        logs = logits.masked_fill(itself | ~there, lowest).log_softmax(dim=1)
        counts = same.sum(dim=1)
        terms = -logs.masked_fill(~same, 0.0).sum(dim=1) / counts.clamp_min(1)
        terms = terms * there[:many]
        return LossOutput(terms.sum() / there[:many].sum().clamp_min(1))
