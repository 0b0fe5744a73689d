"""Positives smoothed over a buffer of a view's vectors: by its neighbours, or by its cluster."""

from __future__ import annotations

import torch
from torch import Tensor

from cse_core.functional import unit
from cse_core.memory import Fifo, Held
from cse_core.parts import PositiveMiner, Setup
from cse_core.types import Batch, Positives, StepContext
from cse_iscse.options import KmeansOptions, KnnOptions, SmoothingOptions


class Smoothing(PositiveMiner):
    """A miner with the last ``size`` vectors of a view (B1 of the paper, ``lbuf`` of its code).

    The public code begins with rows of zeros and looks whether the oldest is one; here the buffer
    begins empty. A batch larger than the buffer is searched whole, as there, but leaves its last
    ``size`` vectors, so that the buffer never grows.
    """

    options: SmoothingOptions
    remembers = ("buffer",)

    def __init__(self, options: SmoothingOptions, setup: Setup) -> None:
        super().__init__(options, setup)
        self.buffer = Fifo()

    def positives(self, batch: Batch) -> Tensor | None:
        """Return the view's ``[A, D]`` vectors at length one, with gradient; None without it."""
        group: Positives | None = batch.targets.get(self.options.view)
        if group is None or not len(batch.anchors):
            return None
        return unit(group.vectors[:, 0])


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
        rows = self.positives(batch)
        if rows is None:
            return {}
        searched = self._searched(rows.detach(), batch)
        if searched is None:
            return {}
        similarities = self._similarities(rows.detach(), searched, batch)
        nearest, absent = self._nearest(similarities)
        neighbours = searched.vectors[nearest]  # [A, k, D]
        cosines = torch.einsum("ad,akd->ak", rows, neighbours)
        logits = torch.cat(
            [(rows * rows).sum(dim=1, keepdim=True), cosines.masked_fill(absent, -torch.inf)], dim=1
        )
        weights = torch.softmax(logits / self.options.beta, dim=1)  # [A, 1 + k]
        smoothed = weights[:, :1] * rows + torch.einsum("ak,akd->ad", weights[:, 1:], neighbours)
        present = ~absent
        mean = (cosines.detach() * present).sum() / present.sum().clamp_min(1)
        ctx.log(f"{self.name}.neighbour_cosine", mean)
        return {"knn-smoothing": Positives(smoothed.unsqueeze(1))}

    def after_step(self, batch: Batch, ctx: StepContext) -> None:
        """Let this step's vectors enter the buffer."""
        rows = self.positives(batch)
        if rows is not None:
            self.buffer.push(rows, batch.row, self.options.size)

    def _searched(self, rows: Tensor, batch: Batch) -> Held | None:
        """Return the vectors among which neighbours are looked for; None before there are any."""
        options = self.options
        alone = options.exclude == "batch"
        size = max(options.size, len(rows))
        kept = self.buffer.held if alone else self.buffer.after(rows, batch.row, size)
        least = options.size if options.start == "full" else 1 + (options.exclude == "rank")
        return None if kept is None or len(kept) < least else kept

    def _similarities(self, rows: Tensor, searched: Held, batch: Batch) -> Tensor:
        """Return ``[A, N]`` cosines, minus infinity where a row is excluded."""
        similarities = rows @ searched.vectors.T
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


class KmeansSmoothing(Smoothing):
    """Makes the group ``kmeans-smoothing``: each positive, mixed with its centroid (IS-CSE).

    With a the positive's vector at length one and c the most similar centroid,

        z* = gamma a + (1 - gamma) c

    a has its gradient, c has none. The buffer is clustered by cosine (spherical k-means) at the end
    of each step, from the centroids that the last step left, so those that a step uses know nothing
    of its own vectors. The paper has 64 clusters and says neither gamma nor how often it clusters;
    the public code has no k-means. The first centroids are drawn from the buffer.
    """

    options: KmeansOptions
    remembers = ("buffer", "centroids")

    def __init__(self, options: KmeansOptions, setup: Setup) -> None:
        super().__init__(options, setup)
        self.centroids: Tensor | None = None

    def mine(self, batch: Batch, ctx: StepContext) -> dict[str, Positives]:
        """Return ``[A, 1, D]`` smoothed positives; no group before there are clusters."""
        rows = self.positives(batch)
        if rows is None or self.centroids is None:
            return {}
        centroids = self.centroids.to(rows.dtype)
        cosine, nearest = (rows.detach() @ centroids.T).max(dim=1)
        gamma = self.options.gamma
        smoothed = gamma * rows + (1 - gamma) * centroids[nearest]
        ctx.log(f"{self.name}.centroid_cosine", cosine.mean())
        return {"kmeans-smoothing": Positives(smoothed.unsqueeze(1))}

    def after_step(self, batch: Batch, ctx: StepContext) -> None:
        """Let this step's vectors enter the buffer, and cluster it again."""
        rows = self.positives(batch)
        if rows is None:
            return
        options, iterations = self.options, self.options.iterations
        kept = self.buffer.push(rows, batch.row, options.size)
        if self.centroids is None:
            least = options.size if options.start == "full" else options.clusters
            if len(kept) < least:
                return
            self.centroids = self._drawn(kept, ctx)
            iterations = options.first_iterations
        centroids = self.centroids.to(kept.vectors.dtype)
        for _ in range(iterations):
            centroids = moved(centroids, kept.vectors)
        self.centroids = centroids

    def _drawn(self, kept: Held, ctx: StepContext) -> Tensor:
        """Return vectors of the buffer as first centroids, none twice."""
        order = torch.randperm(len(kept), generator=ctx.generator(f"{self.name}.centroids"))
        return kept.vectors[order[: self.options.clusters].to(kept.vectors.device)]


def moved(centroids: Tensor, vectors: Tensor) -> Tensor:
    """Return the centroids ``[C, D]`` after one iteration of spherical k-means, at length one.

    A cluster that is empty starts again at one of the ``[N, D]`` vectors that fit worst, N being at
    least C. No device is asked which clusters are empty, and sums are products of matrices, which
    are the same each time on a GPU too.
    """
    fit, cluster = (vectors @ centroids.T).max(dim=1)  # [N]
    members = cluster.unsqueeze(1) == torch.arange(len(centroids), device=vectors.device)  # [N, C]
    empty = ~members.any(dim=0)
    worst = fit.argsort(stable=True)
    spare = vectors[worst[(empty.long().cumsum(dim=0) - 1).clamp_min(0)]]
    means = unit(members.to(vectors.dtype).T @ vectors)
    return torch.where(empty.unsqueeze(1), spare, means)
