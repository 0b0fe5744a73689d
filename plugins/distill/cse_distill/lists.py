"""Similarities of a text with its candidates, by the model and by its teacher."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from cse_core.functional import mean_over_positives, paired_similarity, reduce_terms, similarity
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


def taught(ctx: StepContext, view: str, branch: str, batch: Batch) -> Tensor:
    """Return ``[B, D]`` a teacher's vectors of a view with one text of each sentence."""
    rows = ctx.vectors(view, branch)[SENTENCE]
    empty = rows.vectors.new_zeros(len(batch.rows), rows.vectors.shape[1])
    return empty.index_copy(0, rows.owner, rows.vectors)


@dataclass(frozen=True)
class _Block:
    """Candidates of one view: ``[N, D]`` vectors, ``[A, N]`` which anchors have them, the view."""

    vectors: Tensor
    seen: Tensor
    owner: Tensor
    view: str
    slot: Tensor | None = None


class _Lists(Loss):
    """A loss of the similarities of each text with its positive and its other candidates.

    The candidates are a text's own rows of views of role negative, or all positives and negatives
    of the batch. Their similarities by the teacher are those of its vectors, of any dimension, or
    scores of columns.
    """

    options: ListOptions

    def terms(self, student: Tensor, teacher: Tensor, absent: Tensor) -> Tensor:
        """Return ``[A]`` from ``[A, 1 + N]`` similarities, that of the positive first."""
        raise NotImplementedError

    def __call__(
        self, batch: Batch, targets: Positives, negatives: Negatives, ctx: StepContext
    ) -> LossOutput:
        """Return the mean (or sum) over the anchors that have a positive."""
        kind = self.options.similarity
        blocks = list(self._blocks(batch, targets))
        taught_ones = self._scored if self.options.scores else self._compared
        teacher = taught_ones(batch, blocks, ctx).to(batch.anchors.dtype)  # [A, 1 + N]
        vectors = torch.cat([batch.anchors[:0], *(block.vectors for block in blocks)])
        others = similarity(batch.anchors, vectors, kind)
        seen = torch.ones_like(teacher[:, :1], dtype=torch.bool)  # the positive
        absent = ~torch.cat([seen, *(block.seen for block in blocks)], dim=1)
        positives = paired_similarity(batch.anchors, targets.vectors, kind)  # [A, P]
        losses = [
            self.terms(torch.cat([column.unsqueeze(1), others], dim=1), teacher, absent)
            for column in positives.unbind(dim=1)
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
            blocks.append(_Block(vectors, seen, owner, self.options.target))
        for name in self.options.views:
            rows = batch.views.get(name, {}).get(SENTENCE)
            if rows is not None:
                seen = rows.owner.unsqueeze(0) == batch.owner.unsqueeze(1)
                seen = torch.ones_like(seen) if whole else seen
                blocks.append(_Block(rows.vectors, seen, rows.owner, name, rows.slot))
        return blocks

    def _compared(self, batch: Batch, blocks: list[_Block], ctx: StepContext) -> Tensor:
        """Return ``[A, 1 + N]`` similarities of the teacher's vectors."""
        branch, kind, target = self.options.teacher, self.options.similarity, self.options.target
        anchors, positives = (
            taught(ctx, view, branch, batch)[batch.owner] for view in ("anchor", target)
        )
        parts = [paired_similarity(anchors, positives.unsqueeze(1), kind)]
        for block in blocks:
            if block.slot is None:
                others = taught(ctx, block.view, branch, batch)[block.owner]
            else:
                others = _of(ctx.vectors(block.view, branch)[SENTENCE], block.owner, block.slot)
            parts.append(similarity(anchors, others, kind))
        return torch.cat(parts, dim=1)

    def _scored(self, batch: Batch, blocks: list[_Block], ctx: StepContext) -> Tensor:
        """Return ``[A, 1 + N]`` scores of columns; beside margins the negatives have zero."""
        first, *others = self.options.scores
        parts = [ctx.values(first)[batch.owner].unsqueeze(1)]
        for number, block in enumerate(blocks):
            values = ctx.values(others[number]) if others else ctx.values(first) * 0
            parts.append(values[block.owner].unsqueeze(0).expand(len(batch.anchors), -1))
        return torch.cat(parts, dim=1)


class MarginMse(_Lists):
    """``((s(a, p) - s(a, n)) - (t(a, p) - t(a, n)))^2``, the mean over a text's negatives.

    Hofstaetter et al., 2020: the teacher's margins, not its scores, are learned. A text without
    negatives has loss zero.
    """

    def terms(self, student: Tensor, teacher: Tensor, absent: Tensor) -> Tensor:
        """Return ``[A]`` means over the candidates."""
        apart = (student[:, :1] - student[:, 1:]) - (teacher[:, :1] - teacher[:, 1:])
        kept = ~absent[:, 1:]
        return (apart.square() * kept).sum(dim=1) / kept.sum(dim=1).clamp_min(1)


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


def _of(rows: Embeddings, owner: Tensor, slot: Tensor) -> Tensor:
    """Return ``[N, D]`` the rows with these keys."""
    same = (owner.unsqueeze(1) == rows.owner) & (slot.unsqueeze(1) == rows.slot)
    return rows.vectors[same.to(torch.uint8).argmax(dim=1)]
