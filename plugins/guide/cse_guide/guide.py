"""Weights of negatives by a guide, beside the positive of each anchor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from cse_core.functional import paired_similarity, places_of, similarity
from cse_core.parts import NegativeStore
from cse_core.types import SENTENCE, Batch, Embeddings, Negatives, StepContext
from cse_guide.options import GuideOptions


class Guide(NegativeStore):
    """Removes negatives that a guide finds more similar to the anchor than its positive.

    GISTEmbed (Solatorio, 2024): with the guide's cosines g and t_i = g(a_i, p_i), a negative n of
    anchor i is removed where ``g(a_i, n) > t_i - margin``, or ``> t_i - |t_i| margin`` of the
    relative strategy; an equal one stays. Rows of the target, other anchors and texts of views of
    role negative are judged, an anchor's own hard negatives too. In the second direction of a loss
    the anchors are the positives, and t_i is that of the same pair.

    The guide reads whole sentences, whatever the level, and columns that no text of this run is
    behind, such as noise, stay; what stores keep is judged where ``stored`` says so.
    """

    options: GuideOptions

    def weigh(self, negatives: Negatives, batch: Batch, ctx: StepContext) -> Negatives:
        """Set the log-weights of false negatives to minus infinity."""
        options = self.options
        judged = list(self._texts(negatives, batch, ctx))
        if not judged:
            return negatives
        pairs = [self._by_owner(view, batch, ctx) for view in ("anchor", options.view)]
        cosine = paired_similarity(pairs[0], pairs[1].unsqueeze(1)).squeeze(1)  # [B]
        slack = cosine.abs() * options.margin if options.strategy == "relative" else options.margin
        # Equal texts are summed in another order: what differs by rounding is equal.
        most = (cosine - slack + 16 * torch.finfo(cosine.dtype).eps)[batch.owner].unsqueeze(1)
        anchors = pairs[0 if batch.view == "anchor" else 1][batch.owner]
        log_weights = negatives.log_weights.clone()
        removed, known = [], []
        for block, others in judged:
            false = similarity(anchors, others.to(anchors.dtype)) > most
            seen = ~negatives.mask[:, block]
            log_weights[:, block] = log_weights[:, block].masked_fill(false, -torch.inf)
            removed.append((false & seen).sum())
            known.append(seen.sum())
        share = torch.stack(removed).sum() / torch.stack(known).sum().clamp_min(1)
        ctx.log(f"{self.name}.removed", share)
        return replace(negatives, log_weights=log_weights)

    def _texts(
        self, negatives: Negatives, batch: Batch, ctx: StepContext
    ) -> Iterator[tuple[slice, Tensor]]:
        """Yield each block of columns that is judged, with ``[N, D']`` the guide's vectors."""
        branch = str(self.options.branch)
        for name, block in negatives.spans():
            if (name, branch) in negatives.side:
                yield block, negatives.side[name, branch]
                continue
            view = negatives.views.get(name)
            if name in batch.stored or view is None:
                continue
            row, slot = negatives.row[block], negatives.slot[block]
            if batch.roles.get(name) != "negative":
                # A group of a miner has no texts: what it found is of a sentence of the batch.
                known = "anchor" if view == "anchor" else self.options.view
                yield block, self._by_owner(known, batch, ctx)[negatives.owner[block]]
            elif view in self.options.views:
                rows = ctx.vectors(view, branch)[SENTENCE]
                yield block, _of(rows, batch.rows, row, slot)

    def _by_owner(self, view: str, batch: Batch, ctx: StepContext) -> Tensor:
        """Return ``[B, D']`` the guide's vectors of a view with one text of each sentence."""
        rows = ctx.vectors(view, self.options.branch)[SENTENCE]
        empty = rows.vectors.new_zeros(len(batch.rows), rows.vectors.shape[1])
        return empty.index_copy(0, rows.owner, rows.vectors)


SLOTS = 2**20
"""More than a sentence has rows in a view."""


def _of(given: Embeddings, rows: Tensor, row: Tensor, slot: Tensor) -> Tensor:
    """Return ``[N, D']`` the vectors of texts with these corpus rows and slots."""
    known = rows[given.owner] * SLOTS + given.slot
    return given.vectors[places_of(row * SLOTS + slot, known)]
