"""The lists that the losses compare: similarities of each text with the batch's targets."""

from __future__ import annotations

import torch
from torch import Tensor

from cse_core.functional import listed, per_text, similarity
from cse_core.types import SENTENCE, Batch, Positives, StepContext
from cse_rankcse.options import TaughtOptions


def lists(
    batch: Batch, targets: Positives, ctx: StepContext, options: TaughtOptions
) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``[A, N]`` logits of the model, logits of its teachers, and what is in each list.

    Column ``a * P + p`` is positive p of anchor a; those of its texts in ``views`` follow. Teachers
    may have any dimension.
    """
    count, kind = targets.vectors.shape[1], options.similarity
    owner, whole = batch.owner.repeat_interleave(count), options.candidates == "batch"
    views = [batch.views[name][SENTENCE] for name in options.views if name in batch.views]
    vectors = torch.cat([targets.vectors.flatten(0, 1), *(rows.vectors for rows in views)])
    owners = torch.cat([owner, *(rows.owner for rows in views)])
    there = torch.cat([present(targets), owners.new_ones(len(owners) - len(owner)).bool()])
    same = owners.unsqueeze(0) == batch.owner.unsqueeze(1)
    seen = there & (torch.ones_like(same) if whole and options.own else same ^ whole)
    student = similarity(batch.anchors, vectors, kind) / options.temperature
    if options.scores:
        first, *others = map(ctx.values, options.scores)
        scores = [first.reshape(len(first), -1)[batch.owner].expand(-1, count).flatten()]
        scores += [per_text(values, rows) for values, rows in zip(others, views, strict=True)]
        sign = -1 if options.best == "lowest" else 1
        teacher = sign * torch.cat(scores).to(student.dtype) / options.teacher_temperatures[0]
        return student, teacher.expand_as(student), seen
    known = len(options.teachers)
    weights = options.weights or (1 / known,) * known
    warm = options.teacher_temperatures
    warm = warm * known if len(warm) == 1 else warm
    teacher = torch.zeros_like(student)
    both = options.teacher_views == "both"
    for name, weight, temperature in zip(options.teachers, weights, warm, strict=True):
        one = _taught(ctx, "anchor", name, batch, 1)
        read = one.repeat_interleave(count, dim=0)
        if both:
            read = _taught(ctx, options.target, name, batch, count)
        more = [ctx.vectors(view, name)[SENTENCE] for view in options.views]
        other = [read, *(
            listed(m, rows.owner, rows.slot, 1).vectors[:, 0]
            for m, rows in zip(more, views, strict=True)
        )]  # fmt: skip
        close = similarity(one, torch.cat(other), kind).to(student.dtype)
        teacher = teacher + weight * close / temperature
    return student, teacher, seen


def present(targets: Positives) -> Tensor:
    """Return ``[A * P]`` which positives are there."""
    if targets.weights is None:
        return torch.ones_like(targets.vectors[..., 0], dtype=torch.bool).flatten()
    return (targets.weights > 0).flatten()


def log_shares(logits: Tensor, seen: Tensor) -> Tensor:
    """Return ``[A, N]`` logarithms of the softmax over what is seen; a lowest number elsewhere."""
    return logits.masked_fill(~seen, torch.finfo(logits.dtype).min / 2).log_softmax(dim=1)


def _taught(ctx: StepContext, view: str, branch: str, batch: Batch, most: int) -> Tensor:
    """Return ``[A * P, D]`` a teacher's vectors of the texts that each anchor has in a view."""
    rows = ctx.vectors(view, branch)[SENTENCE]
    return listed(rows, batch.owner, batch.slot, most).vectors.flatten(0, 1)
