"""Segments of one text as positives of each other."""

from __future__ import annotations

import torch

from cse_core.parts import PositiveMiner
from cse_core.types import Batch, Positives, StepContext
from cse_hicl.options import SameSequenceOptions


class SameSequence(PositiveMiner):
    """Adds the other segments of a segment's text to its own positive (HiCL, Table 4, "positive").

    Group ``same-sequence`` is, for each segment, its own second view and those of the other
    segments of its text. The paper does not say how several positives enter the loss; here the
    core's way is taken: the mean of -log p over them, none among the negatives of another. In the
    batch every segment is a negative once, however many segments it is a positive of.

    Which are a text's segments is found by index work of a fixed size (``most``), so that no GPU
    has to be asked how many there are.
    """

    options: SameSequenceOptions

    def mine(self, batch: Batch, ctx: StepContext) -> dict[str, Positives]:
        """Return ``[A, P, D]`` positives, the segment's own first, with weight 0 past its text."""
        group = batch.targets.get(self.options.view)
        if group is None:
            return {}
        anchors = len(batch.anchors)
        ordered, order = torch.sort(batch.owner, stable=True)
        first = torch.searchsorted(ordered, batch.owner)
        count = torch.searchsorted(ordered, batch.owner, right=True) - first  # [A]
        place = torch.arange(anchors, device=batch.owner.device)
        rank = torch.empty_like(order).scatter(0, order, place) - first
        step = place[: self.options.most]
        index = order[first.unsqueeze(1) + (rank.unsqueeze(1) + step) % count.unsqueeze(1)]
        weights = (step < count.unsqueeze(1)).to(group.vectors.dtype)
        vectors = group.vectors[:, 0][index]
        return {"same-sequence": Positives(vectors, weights, distinct=place * len(step))}
