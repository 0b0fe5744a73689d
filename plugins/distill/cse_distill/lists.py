"""Similarities of a text with its candidates, by the model and by its teacher."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from cse_core.functional import (
    listed,
    mean_over_positives,
    paired_similarity,
    per_text,
    reduce_terms,
    similarity,
)
from cse_core.parts import Loss
from cse_core.types import (
    SENTENCE,
    Batch,
    Embeddings,
    LossOutput,
    Negatives,
    Positives,
    StepContext,
)
from cse_distill.options import KlOptions, ListOptions


def taught(ctx: StepContext, view: str, branch: str, batch: Batch, most: int = 1) -> Tensor:
    """Return ``[A, P, D]`` a teacher's vectors of the texts that each anchor has in a view."""
    rows = ctx.vectors(view, branch)[SENTENCE]
    return listed(rows, batch.owner, batch.slot, most).vectors


@dataclass(frozen=True)
class _Block:
    """Candidates of one view: ``[N, D]`` vectors, ``[A, N]`` which anchors have them, the view.

    ``rows`` are those of a view of negatives, None for the positives of the batch.
    """

    vectors: Tensor
    seen: Tensor
    view: str
    rows: Embeddings | None = None


class _Lists(Loss):
    """A loss of the similarities of each text with its positive and its other candidates.

    The candidates are a text's own rows of views of role negative, or all positives and negatives
    of the batch; each positive has a list of its own with them, or all are one list. Their
    similarities by the teacher are those of its vectors, of any dimension, or scores of columns.
    """

    options: ListOptions

    def terms(self, student: Tensor, teacher: Tensor, absent: Tensor) -> Tensor:
        """Return ``[A]`` from ``[A, 1 + N]`` similarities, that of the positive first."""
        raise NotImplementedError

    def of_list(self, student: Tensor, teacher: Tensor, absent: Tensor) -> Tensor:
        """Return ``[A]`` from ``[A, P + N]`` similarities, among which no positive comes first."""
        return self.terms(student, teacher, absent)

    def __call__(
        self, batch: Batch, targets: Positives, negatives: Negatives, ctx: StepContext
    ) -> LossOutput:
        """Return the mean (or sum) over the anchors that have a positive."""
        kind = self.options.similarity
        blocks = list(self._blocks(batch, targets))
        taught_ones = self._scored if self.options.scores else self._compared
        many = targets.vectors.shape[1]
        teacher = taught_ones(batch, blocks, many, ctx).to(batch.anchors.dtype)  # [A, P + N]
        vectors = torch.cat([batch.anchors[:0], *(block.vectors for block in blocks)])
        positives = paired_similarity(batch.anchors, targets.vectors, kind)  # [A, P]
        student = torch.cat([positives, similarity(batch.anchors, vectors, kind)], dim=1)
        there = torch.ones_like(positives, dtype=torch.bool)
        if targets.weights is not None:
            there = targets.weights > 0
        absent = ~torch.cat([there, *(block.seen for block in blocks)], dim=1)
        if self.options.candidates == "list":
            terms = self.of_list(student, teacher, absent) * there.any(dim=1)
        else:
            absent[:, :many] = False
            tables = (student, teacher, absent)
            losses = [
                self.terms(*(torch.cat([t[:, n : n + 1], t[:, many:]], dim=1) for t in tables))
                for n in range(many)
            ]
            terms = mean_over_positives(torch.stack(losses, dim=1), targets)
        return LossOutput(reduce_terms(terms, targets, self.options.reduction))

    def _blocks(self, batch: Batch, targets: Positives) -> list[_Block]:
        """Return the candidates beside the positive, those of the target first."""
        whole, blocks = self.options.candidates == "batch", []
        if whole:
            many = targets.vectors.shape[1]
            owner = batch.owner.repeat_interleave(many)
            seen = owner.unsqueeze(0) != batch.owner.unsqueeze(1)
            if targets.weights is not None:
                seen = seen & (targets.weights.flatten() > 0)
            vectors = targets.vectors.flatten(0, 1)
            blocks.append(_Block(vectors, seen, self.options.target))
        for name in self.options.views:
            rows = batch.views.get(name, {}).get(SENTENCE)
            if rows is not None:
                seen = rows.owner.unsqueeze(0) == batch.owner.unsqueeze(1)
                seen = torch.ones_like(seen) if whole else seen
                blocks.append(_Block(rows.vectors, seen, name, rows))
        return blocks

    def _compared(self, batch: Batch, blocks: list[_Block], many: int, ctx: StepContext) -> Tensor:
        """Return ``[A, P + N]`` similarities of the teacher's vectors."""
        branch, kind, target = self.options.teacher, self.options.similarity, self.options.target
        anchors = taught(ctx, "anchor", branch, batch)[:, 0]
        positives = taught(ctx, target, branch, batch, many)
        parts = [paired_similarity(anchors, positives, kind)]
        for block in blocks:
            others = positives.flatten(0, 1)
            if block.rows is not None:
                others = _of(ctx.vectors(block.view, branch)[SENTENCE], block.rows)
            parts.append(similarity(anchors, others, kind))
        return torch.cat(parts, dim=1)

    def _scored(self, batch: Batch, blocks: list[_Block], many: int, ctx: StepContext) -> Tensor:
        """Return ``[A, P + N]`` scores of columns; beside margins the negatives have zero."""
        first, *others = self.options.scores
        values = ctx.values(first)
        parts = [values.reshape(len(values), -1)[batch.owner].expand(-1, many)]
        for number, block in enumerate(blocks):
            rows = cast(Embeddings, block.rows)
            numbers = (
                per_text(ctx.values(others[number]), rows) if others else rows.vectors[:, 0] * 0
            )
            parts.append(numbers.detach().unsqueeze(0).expand(len(batch.anchors), -1))
        return torch.cat(parts, dim=1)


class MarginMse(_Lists):
    """``((s(a, p) - s(a, n)) - (t(a, p) - t(a, n)))^2``, the mean over a text's negatives.

    Hofstaetter et al., 2020: the teacher's margins, not its scores, are learned. A text without
    negatives has loss zero. Of one list it is the mean over all pairs of texts.
    """

    def terms(self, student: Tensor, teacher: Tensor, absent: Tensor) -> Tensor:
        """Return ``[A]`` means over the candidates."""
        apart = (student[:, :1] - student[:, 1:]) - (teacher[:, :1] - teacher[:, 1:])
        kept = ~absent[:, 1:]
        return (apart.square() * kept).sum(dim=1) / kept.sum(dim=1).clamp_min(1)

    def of_list(self, student: Tensor, teacher: Tensor, absent: Tensor) -> Tensor:
        """Return ``[A]`` means over all pairs: twice the variance of what both differ by."""
        apart, count = (student - teacher).masked_fill(absent, 0.0), (~absent).sum(dim=1)
        mean = apart.sum(dim=1) / count.clamp_min(1)
        squares = (apart - mean.unsqueeze(1)).masked_fill(absent, 0.0).square().sum(dim=1)
        return 2 * squares / (count - 1).clamp_min(1)


class Kl(_Lists):
    """``t^2 sum_c p_c (log p_c - log q_c)``, p and q softmaxes of the teacher and of the model.

    Hinton et al., 2015, over the candidates c of a text; each softmax has a temperature, and t is
    the model's.
    """

    options: KlOptions

    def terms(self, student: Tensor, teacher: Tensor, absent: Tensor) -> Tensor:
        """Return ``[A]`` divergences of the model's distributions from the teacher's."""
        warm, taught_at = self.options.temperature, self.options.teacher_temperature
        lowest = torch.finfo(student.dtype).min / 2
        logits = (student / warm).masked_fill(absent, lowest)
        wanted = (teacher / (taught_at or warm)).masked_fill(absent, lowest)
        apart = wanted.log_softmax(dim=1) - logits.log_softmax(dim=1)
        return warm**2 * (wanted.softmax(dim=1) * apart.masked_fill(absent, 0.0)).sum(dim=1)


def _of(rows: Embeddings, wanted: Embeddings) -> Tensor:
    """Return ``[N, D]`` the rows with the keys of others."""
    return listed(rows, wanted.owner, wanted.slot, 1).vectors[:, 0]
