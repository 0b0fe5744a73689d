"""Clusters of a buffer over many steps, against loops that are slow and obvious."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import torch
from cse_iscse.options import KmeansOptions
from cse_iscse.smoothing import moved
from cse_testkit import make_batch, make_context, make_part
from torch import Tensor
from torch.nn.functional import normalize

from tests.fixtures.equations import equation


def slow_iteration(centroids: list[Tensor], vectors: list[Tensor]) -> list[Tensor]:
    """Assign each vector to the most similar centroid; means at length one."""
    members: list[list[Tensor]] = [[] for _ in centroids]
    fits = []
    for vector in vectors:
        cosines = [float(vector @ centroid) for centroid in centroids]
        members[cosines.index(max(cosines))].append(vector)
        fits.append(max(cosines))
    worst = [vectors[place] for place in sorted(range(len(vectors)), key=fits.__getitem__)]
    made = []
    for own in members:
        if not own:
            made.append(worst.pop(0))
            continue
        total = own[0]
        for vector in own[1:]:
            total = total + vector
        made.append(total / total.norm())
    return made


@equation(
    "IS-CSE", "Eq. 5, K-means of the buffer and gamma", "positives kmeans-smoothing", within=1e-10
)
def test_steps_in_loops() -> Iterator[tuple[Any, Any]]:
    sizes = ([4] * 9, [4, 4, 3, 1, 4, 3, 1, 4, 4], [20, 3, 15, 1, 4])
    for counts, start, iterations in product(sizes, ("full", "at-once"), (1, 3)):
        options = {"size": 12, "clusters": 5, "iterations": iterations, "start": start}
        miner = make_part("positives", "kmeans-smoothing", gamma=0.3, first_iterations=4, **options)
        held: list[Tensor] = []
        centroids: list[Tensor] = []
        for step, size in enumerate(counts):
            batch = make_batch(sentences=size, seed=step, dimension=5)
            ctx = make_context(batch, step=step)
            own = [v / v.norm() for v in batch.targets["positive"].vectors[:, 0]]
            found = miner.mine(batch, ctx)
            assert bool(found) == bool(centroids), step
            if centroids:
                for vector, smoothed in zip(own, found["kmeans-smoothing"].vectors, strict=True):
                    nearest = max(centroids, key=lambda each: float(vector @ each))  # noqa: B023
                    wanted = 0.3 * vector + 0.7 * nearest
                    yield smoothed[0], wanted
            miner.after_step(batch, ctx)
            held = [*held, *own][-12:]
            rounds = iterations
            if not centroids and len(held) >= (12 if start == "full" else 5):
                draws = ctx.generator("kmeans-smoothing.centroids")
                order = torch.randperm(len(held), generator=draws)
                centroids, rounds = [held[place] for place in order[:5].tolist()], 4
            for _ in range(rounds if centroids else 0):
                centroids = slow_iteration(centroids, held)
            state = miner.state_dict()
            yield state["vectors"], torch.stack(held)
            assert ("centroids" in state) == bool(centroids)
            if centroids:
                yield state["centroids"], torch.stack(centroids)


def test_empty_clusters_begin_anew_where_the_fit_is_worst() -> None:
    """All four fit the first of three centroids; the two that fit it worst become the others."""
    vectors = torch.tensor([[1.0, 0.0], [0.6, 0.8], [0.8, 0.6], [0.0, 1.0]])
    centroids = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, -1.0]])
    found = moved(centroids, vectors)
    assert torch.equal(found[1:], vectors[[3, 1]])
    assert torch.allclose(found[0], normalize(vectors.sum(dim=0), dim=0))


def test_the_gradient_is_gammas_share() -> None:
    leaf = make_batch(seed=3).targets["positive"].vectors[:, 0].detach().requires_grad_(True)
    batch = make_batch({"anchor": torch.zeros(4, 8, dtype=torch.float64), "positive": leaf})
    earlier, share = make_batch(sentences=8, seed=2), torch.arange(8.0, dtype=torch.float64)
    for gamma in (0.0, 0.5, 1.0):
        miner = make_part("positives", "kmeans-smoothing", size=8, clusters=2, gamma=gamma)
        miner.after_step(earlier, make_context(earlier))
        found = miner.mine(batch, make_context(batch))["kmeans-smoothing"].vectors[:, 0]
        gradient = torch.autograd.grad((found * share).sum(), leaf)[0]
        wanted = torch.autograd.grad((gamma * normalize(leaf, dim=1) * share).sum(), leaf)[0]
        assert torch.allclose(gradient, wanted, rtol=0, atol=1e-12)


def test_the_defaults() -> None:
    options = KmeansOptions()
    assert options.clusters == 64  # Table 3
    # Ours, the paper gives no value: half of each, a few iterations first and one in each step.
    assert (options.gamma, options.iterations, options.first_iterations) == (0.5, 1, 10)
