"""The lists that the losses compare: similarities of each text with the batch's targets."""

from __future__ import annotations

import torch
from torch import Tensor

from cse_core.functional import similarity
from cse_core.types import SENTENCE, Batch, Positives, StepContext
from cse_rankcse.options import TaughtOptions


def lists(
    batch: Batch, targets: Positives, ctx: StepContext, options: TaughtOptions
) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``[A, N]`` logits of the model, logits of its teachers, and what is in each list.

    Column ``a * P + p`` is positive p of anchor a. A teacher has one vector of a sentence's target,
    of any dimension.
    """
    count = targets.vectors.shape[1]
    owner = batch.owner.repeat_interleave(count)
    seen = present(targets).unsqueeze(0).expand(len(batch.anchors), -1)
    if not options.own:
        seen = seen & (owner.unsqueeze(0) != batch.owner.unsqueeze(1))
    student = similarity(batch.anchors, targets.vectors.flatten(0, 1), options.similarity)
    known = len(options.teachers)
    weights = options.weights or (1 / known,) * known
    warm = options.teacher_temperatures
    warm = warm * known if len(warm) == 1 else warm
    teacher = torch.zeros_like(student)
    views = ("anchor", options.target if options.teacher_views == "both" else "anchor")
    for name, weight, temperature in zip(options.teachers, weights, warm, strict=True):
        one, other = (_taught(ctx, view, name, batch) for view in views)
        close = similarity(one, other, options.similarity).to(student.dtype)
        teacher = teacher + weight * (close / temperature)[batch.owner][:, owner]
    return student / options.temperature, teacher, seen


def present(targets: Positives) -> Tensor:
    """Return ``[A * P]`` which positives are there."""
    if targets.weights is None:
        return torch.ones_like(targets.vectors[..., 0], dtype=torch.bool).flatten()
    return (targets.weights > 0).flatten()


def log_shares(logits: Tensor, seen: Tensor) -> Tensor:
    """Return ``[A, N]`` logarithms of the softmax over what is seen; a lowest number elsewhere."""
    return logits.masked_fill(~seen, torch.finfo(logits.dtype).min / 2).log_softmax(dim=1)


def _taught(ctx: StepContext, view: str, branch: str, batch: Batch) -> Tensor:
    """Return ``[B, D]`` a teacher's vectors of a view with one text of each sentence."""
    rows = ctx.vectors(view, branch)[SENTENCE]
    empty = rows.vectors.new_zeros(len(batch.rows), rows.vectors.shape[1])
    return empty.index_copy(0, rows.owner, rows.vectors)
