"""A positive smoothed towards the centroid of its cluster in a buffer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from cse_core.builtins.fifo import Held
from cse_core.functional import unit
from cse_core.parts import Setup
from cse_core.types import Batch, Positives, StepContext
from cse_iscse.options import KmeansOptions
from cse_iscse.smoothing import Smoothing


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

    def __init__(self, options: KmeansOptions, setup: Setup) -> None:
        super().__init__(options, setup)
        self.centroids: Tensor | None = None

    def mine(self, batch: Batch, ctx: StepContext) -> dict[str, Positives]:
        """Return ``[A, 1, D]`` smoothed positives; no group before there are clusters."""
        own = self.positives(batch)
        if own is None or self.centroids is None:
            return {}
        centroids = self.centroids.to(own.dtype)
        cosine, nearest = (own.detach() @ centroids.T).max(dim=1)
        gamma = self.options.gamma
        smoothed = gamma * own + (1 - gamma) * centroids[nearest]
        ctx.log(f"{self.name}.centroid_cosine", cosine.mean())
        return {"kmeans-smoothing": Positives(smoothed.unsqueeze(1))}

    def after_step(self, batch: Batch, ctx: StepContext) -> None:
        """Let this step's vectors enter the buffer, and cluster it again."""
        own = self.positives(batch)
        if own is None:
            return
        options, iterations = self.options, self.options.iterations
        held = self.buffer.push(own, batch.row, options.size)
        if self.centroids is None:
            least = options.size if options.start == "full" else options.clusters
            if len(held) < least:
                return
            self.centroids = self._drawn(held, ctx)
            iterations = options.first_iterations
        centroids = self.centroids.to(held.vectors.dtype)
        for _ in range(iterations):
            centroids = moved(centroids, held.vectors)
        self.centroids = centroids

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return the buffer and the centroids."""
        found = {} if self.centroids is None else {"centroids": self.centroids}
        return {**super().state_dict(), **found}

    def load_state_dict(self, state: Mapping[str, Any], *args: Any, **kwargs: Any) -> None:
        """Restore what ``state_dict`` returned."""
        super().load_state_dict(state)
        self.centroids = state.get("centroids")

    def _drawn(self, held: Held, ctx: StepContext) -> Tensor:
        """Return vectors of the buffer as first centroids, none twice."""
        order = torch.randperm(len(held), generator=ctx.generator(f"{self.name}.centroids"))
        return held.vectors[order[: self.options.clusters].to(held.vectors.device)]


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
