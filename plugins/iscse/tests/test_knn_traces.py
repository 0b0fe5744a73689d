"""Neighbours and buffers over many steps, against loops that are slow and obvious."""

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
import torch
from cse_testkit import make_batch, make_context, make_part
from torch import Tensor

from cse_core.types import Batch
from tests.fixtures.equations import equation

BETA = 0.7


class SlowBuffer:
    """A list of (vector, row), and what is done with it a sentence at a time."""

    def __init__(self, size: int, k: int, start: str, exclude: str) -> None:
        self.size, self.k, self.start, self.exclude = size, k, start, exclude
        self.held: list[tuple[Tensor, int]] = []

    def step(self, positives: Tensor, rows: list[int]) -> list[Tensor] | None:
        """Return the smoothed vectors of a step, or None, and let its vectors enter."""
        entering = [(v / v.norm(), row) for v, row in zip(positives, rows, strict=True)]
        earlier, keeps = self.held, max(self.size, len(entering))
        searched = [*self.held, *entering][-keeps:]
        self.held = searched[-self.size :]
        if self.exclude == "batch":
            searched = earlier
        least = self.size if self.start == "full" else (2 if self.exclude == "rank" else 1)
        if len(searched) < least:
            return None
        return [self.smoothed(own, row, searched) for own, row in entering]

    def smoothed(self, own: Tensor, row: int, searched: list[tuple[Tensor, int]]) -> Tensor:
        ranked = sorted(searched, key=lambda each: -float(own @ each[0]))
        if self.exclude == "rank":
            ranked = ranked[1:]
        if self.exclude == "row":
            ranked = [each for each in ranked if each[1] != row]
        values = [own, *(vector for vector, _ in ranked[: self.k])]
        shares = [math.exp(float(own @ value) / BETA) for value in values]
        total = torch.zeros_like(own)
        for share, value in zip(shares, values, strict=True):
            total = total + share / sum(shares) * value
        return total


def batches(sizes: list[int], *, rows: int = 40) -> list[Batch]:
    """Return batches of rows in order, over and over, with new vectors each time."""
    made, first = [], 0
    for step, size in enumerate(sizes):
        ids = [(first + place) % rows for place in range(size)]
        first += size
        made.append(make_batch(sentences=size, rows=ids, seed=step, dimension=5))
    return made


@equation(
    "IS-CSE", "Eqs. 3 and 4, buffer, kNN and its self-attention (beta)", "positives knn-smoothing"
)
def test_steps_in_loops() -> Iterator[tuple[Any, Any]]:
    sizes = (
        [4] * 9,  # three lengths of a buffer of 12
        [4, 4, 3, 4, 4, 3, 4, 4, 3],  # a shorter batch at the end of each epoch
        [5, 1, 1, 7, 1, 12, 4, 1],  # single rows, and a batch as long as the buffer
        [20, 3, 15, 13, 1, 4],  # batches longer than the buffer
    )
    for counts, exclude, start in product(sizes, ("rank", "row", "batch"), ("full", "at-once")):
        slow = SlowBuffer(12, 3, start, exclude)
        options = {"size": 12, "k": 3, "beta": BETA, "start": start, "exclude": exclude}
        miner = make_part("positives", "knn-smoothing", **options)
        for step, batch in enumerate(batches(counts)):
            ctx = make_context(batch, step=step)
            found = miner.mine(batch, ctx)
            wanted = slow.step(batch.targets["positive"].vectors[:, 0], batch.rows.tolist())
            assert bool(found) == (wanted is not None), (options, step)
            if wanted is not None:
                smoothed = found["knn-smoothing"].vectors[:, 0]
                yield smoothed, torch.stack(wanted)
            miner.after_step(batch, ctx)
            state = miner.state_dict()
            assert state["row"].tolist() == [row for _, row in slow.held]
            held = torch.stack([vector for vector, _ in slow.held])
            yield state["vectors"], held


def test_one_row_without_any_neighbour() -> None:
    """By rank no group is made; by row the sentence stands alone and stays as it is."""
    batch = make_batch(sentences=1)
    by_rank = make_part("positives", "knn-smoothing", size=8, k=3, start="at-once")
    assert by_rank.mine(batch, make_context(batch)) == {}
    by_row = make_part("positives", "knn-smoothing", size=8, k=3, start="at-once", exclude="row")
    found = by_row.mine(batch, make_context(batch))["knn-smoothing"].vectors[:, 0]
    own = torch.nn.functional.normalize(batch.targets["positive"].vectors[:, 0], dim=1)
    assert torch.allclose(found, own)


def test_the_mean_cosine_of_neighbours_is_logged() -> None:
    miner, batch = make_part("positives", "knn-smoothing", size=8, k=2), make_batch(seed=1)
    earlier, log = make_batch(sentences=8, rows=[9] * 8, seed=9), dict[str, Any]()
    miner.after_step(earlier, make_context(earlier))
    miner.mine(batch, make_context(batch, log=log))
    own = torch.nn.functional.normalize(batch.targets["positive"].vectors[:, 0], dim=1)
    held = miner.buffer.after(own, batch.row, 8).vectors
    wanted = (own @ held.T).topk(3, dim=1).values[:, 1:].mean()
    assert float(log["knn-smoothing.neighbour_cosine"]) == pytest.approx(float(wanted))
