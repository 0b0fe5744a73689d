"""Weights of in-batch negatives by a second encoder."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from cse_core.functional import similarity
from cse_core.parts import NegativeStore
from cse_core.types import SENTENCE, Batch, Embeddings, Negatives, StepContext
from cse_dclr.options import InstanceWeightsOptions


class InstanceWeights(NegativeStore):
    """Gives weight 0 to another sentence of the batch that a second encoder finds too similar.

    DCLR, instance weighting: the weight is 0 where the second encoder's cosine of the anchor's
    and the other sentence is above ``phi``, else 1. Weight 0 is the log-weight minus infinity, a
    factor of the paper's denominator; a loss that multiplies logits reads it itself. What is of the
    anchor's own sentence keeps weight 1, and so do columns that no sentence of the batch is behind:
    noise, texts of their own, such as hard negatives, and, unless ``stored``, what stores keep.

    The second encoder reads whole sentences, whatever the level. The authors' code has its dropout
    on; here that is the branch's ``mode``.
    """

    options: InstanceWeightsOptions

    def weigh(self, negatives: Negatives, batch: Batch, ctx: StepContext) -> Negatives:
        """Set the log-weights of in-batch columns to 0 or minus infinity more."""
        blocks = [
            block
            for name, block in negatives.spans()
            if name not in (*batch.stored, "none") and batch.roles.get(name) != "negative"
        ]
        branch = self.options.branch
        kept = [
            (block, negatives.side[name, branch])
            for name, block in negatives.spans()
            if branch is not None and (name, branch) in negatives.side
        ]
        if not blocks and not kept:
            return negatives
        anchors, others = self._vectors(batch, ctx)
        if batch.view == "anchor":
            close = similarity(anchors[batch.owner], others)  # [A, B]
        else:
            close = similarity(anchors, others[batch.owner]).T
        seen = close > self.options.phi
        judged = []
        for block in blocks:
            owner = negatives.owner[block]
            judged.append((block, seen[:, owner] & (owner >= 0)))
        for block, side in kept:
            close = similarity(anchors[batch.owner], self._centered(side))
            judged.append((block, close > self.options.phi))
        log_weights = negatives.log_weights.clone()
        taken, known = [], []
        for block, here in judged:
            here = here & (negatives.row[block].unsqueeze(0) != batch.row.unsqueeze(1))
            log_weights[:, block] = log_weights[:, block].masked_fill(here, -torch.inf)
            taken.append((here & ~negatives.mask[:, block]).sum())
            known.append((~negatives.mask[:, block]).sum())
        share = torch.stack(taken).sum() / torch.stack(known).sum().clamp_min(1)
        ctx.log(f"{self.name}.removed", share)
        return replace(negatives, log_weights=log_weights)

    def _vectors(self, batch: Batch, ctx: StepContext) -> tuple[Tensor, Tensor]:
        """Return ``[B, D]`` the second encoder's vectors of the anchors, and of the others."""
        branch, count = self.options.branch, len(batch.rows)
        anchors, others = (
            self._centered(_by_owner(ctx.vectors(view, branch)[SENTENCE], count))
            for view in ("anchor", self.options.view)
        )
        return anchors, others

    def _centered(self, vectors: Tensor) -> Tensor:
        return vectors - vectors.mean(dim=0) if self.options.center else vectors


def _by_owner(embeddings: Embeddings, count: int) -> Tensor:
    """Return ``[B, D]`` vectors of sentences; of one that has none, zeros, like nothing else."""
    vectors = embeddings.vectors.detach()
    return vectors.new_zeros(count, vectors.shape[1]).index_copy(0, embeddings.owner, vectors)
