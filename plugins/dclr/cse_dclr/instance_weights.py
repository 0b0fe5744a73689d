"""Weights of in-batch negatives by a second encoder."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from cse_core.functional import similarity
from cse_core.parts import NegativeStore, Setup
from cse_core.types import SENTENCE, Batch, Embeddings, Negatives, StepContext
from cse_dclr.options import InstanceWeightsOptions


class InstanceWeights(NegativeStore):
    """Gives weight 0 to another sentence of the batch that a second encoder finds too similar.

    DCLR, instance weighting: the weight is 0 where the second encoder's cosine of the anchor's
    and the other sentence is above ``phi``, else 1. Weight 0 is the log-weight minus infinity, a
    factor of the paper's denominator; a loss that multiplies logits reads it itself. What is of the
    anchor's own sentence keeps weight 1, and so do columns that no sentence of the batch is behind:
    noise, what other stores hold, and texts of their own, such as hard negatives.

    The second encoder reads whole sentences, whatever the level. The authors' code has its dropout
    on; here that is the branch's ``mode``.
    """

    def __init__(self, options: InstanceWeightsOptions, setup: Setup) -> None:
        self.options = options
        self.name = setup.name

    def weigh(self, negatives: Negatives, batch: Batch, ctx: StepContext) -> Negatives:
        """Set the log-weights of in-batch columns to 0 or minus infinity more."""
        blocks = [
            slice(stop - count, stop)
            for name, count, stop in _placed(negatives)
            if count and name not in batch.stored and batch.roles.get(name) != "negative"
        ]
        if not blocks:
            return negatives
        false = self._false_negatives(batch, ctx)  # [B, B]
        seen = (false if batch.view == "anchor" else false.T)[batch.owner]  # [A, B]
        log_weights = negatives.log_weights.clone()
        taken, known = [], []
        for block in blocks:
            there, owner = _found(batch.rows, negatives.row[block])
            here = seen[:, owner] & there
            here = here & (negatives.row[block].unsqueeze(0) != batch.row.unsqueeze(1))
            log_weights[:, block] = log_weights[:, block].masked_fill(here, -torch.inf)
            taken.append((here & ~negatives.mask[:, block]).sum())
            known.append((~negatives.mask[:, block]).sum())
        share = torch.stack(taken).sum() / torch.stack(known).sum().clamp_min(1)
        ctx.log(f"{self.name}.removed", share)
        return replace(negatives, log_weights=log_weights)

    def _false_negatives(self, batch: Batch, ctx: StepContext) -> Tensor:
        """Return ``[B, B]`` whether a sentence (column) is too similar to an anchor's (row)."""
        branch, count = self.options.branch, len(batch.rows)
        anchors, others = (
            self._centered(_by_owner(ctx.vectors(view, branch)[SENTENCE], count))
            for view in ("anchor", self.options.view)
        )
        return similarity(anchors, others) > self.options.phi

    def _centered(self, vectors: Tensor) -> Tensor:
        return vectors - vectors.mean(dim=0) if self.options.center else vectors


def _placed(negatives: Negatives) -> list[tuple[str, int, int]]:
    """Return name, number of columns and end of each block."""
    placed, stop = [], 0
    for name, count in negatives.blocks:
        stop += count
        placed.append((name, count, stop))
    return placed


def _by_owner(embeddings: Embeddings, count: int) -> Tensor:
    """Return ``[B, D]`` vectors of sentences; of one that has none, zeros, like nothing else."""
    vectors = embeddings.vectors.detach()
    return vectors.new_zeros(count, vectors.shape[1]).index_copy(0, embeddings.owner, vectors)


def _found(rows: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    """Return ``[N]`` whether corpus rows are in the batch, and which batch row each is."""
    equal = wanted.unsqueeze(1) == rows.unsqueeze(0)
    return equal.any(dim=1), equal.to(torch.uint8).argmax(dim=1)
