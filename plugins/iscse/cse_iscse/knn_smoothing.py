"""A positive smoothed by attention over its nearest neighbours in a buffer."""

from __future__ import annotations

import torch
from torch import Tensor

from cse_core.builtins.fifo import Held
from cse_core.types import Batch, Positives, StepContext
from cse_iscse.options import KnnOptions
from cse_iscse.smoothing import Smoothing


class KnnSmoothing(Smoothing):
    """Makes the group ``knn-smoothing``: each positive, averaged with its neighbours (IS-CSE).

    With a the positive's vector at length one and n_1 ... n_k its nearest vectors in the buffer,

        z* = sum_j softmax_j([a a, a n_1, ..., a n_k] / beta) [a, n_1, ..., n_k]_j

    a has its gradient as query, key and value; neighbours have none. z* is not brought to length
    one: a loss with cosine similarity does so. The paper leaves open what is searched. As in the
    public code this step's vectors enter the buffer before it is searched, so the nearest is the
    sentence's own and is dropped by its rank, and other sentences of the batch may be neighbours;
    ``exclude`` has two other readings.
    """

    options: KnnOptions

    def mine(self, batch: Batch, ctx: StepContext) -> dict[str, Positives]:
        """Return ``[A, 1, D]`` smoothed positives; no group before there are neighbours."""
        own = self.positives(batch)
        if own is None:
            return {}
        searched = self._searched(own.detach(), batch)
        if searched is None:
            return {}
        similarities = self._similarities(own.detach(), searched, batch)
        nearest, absent = self._nearest(similarities)
        neighbours = searched.vectors[nearest]  # [A, k, D]
        cosines = torch.einsum("ad,akd->ak", own, neighbours)
        logits = torch.cat(
            [(own * own).sum(dim=1, keepdim=True), cosines.masked_fill(absent, -torch.inf)], dim=1
        )
        weights = torch.softmax(logits / self.options.beta, dim=1)  # [A, 1 + k]
        smoothed = weights[:, :1] * own + torch.einsum("ak,akd->ad", weights[:, 1:], neighbours)
        present = ~absent
        mean = (cosines.detach() * present).sum() / present.sum().clamp_min(1)
        ctx.log(f"{self.name}.neighbour_cosine", mean)
        return {"knn-smoothing": Positives(smoothed.unsqueeze(1))}

    def after_step(self, batch: Batch, ctx: StepContext) -> None:
        """Let this step's vectors enter the buffer."""
        own = self.positives(batch)
        if own is not None:
            self.buffer.push(own, batch.row, self.options.size)

    def _searched(self, own: Tensor, batch: Batch) -> Held | None:
        """Return the vectors among which neighbours are looked for; None before there are any."""
        options = self.options
        alone = options.exclude == "batch"
        size = max(options.size, len(own))
        held = self.buffer.held if alone else self.buffer.after(own, batch.row, size)
        least = options.size if options.start == "full" else 1 + (options.exclude == "rank")
        return None if held is None or len(held) < least else held

    def _similarities(self, own: Tensor, searched: Held, batch: Batch) -> Tensor:
        """Return ``[A, N]`` cosines, minus infinity where a row is excluded."""
        similarities = own @ searched.vectors.T
        if self.options.exclude == "row":
            same = batch.row.unsqueeze(1) == searched.row.unsqueeze(0)
            similarities = similarities.masked_fill(same, -torch.inf)
        return similarities

    def _nearest(self, similarities: Tensor) -> tuple[Tensor, Tensor]:
        """Return ``[A, k]`` places of the neighbours, and which of them are excluded rows."""
        dropped = 1 if self.options.exclude == "rank" else 0
        count = min(self.options.k + dropped, similarities.shape[1])
        values, places = similarities.topk(count, dim=1)
        return places[:, dropped:], values[:, dropped:] == -torch.inf
