"""What the queue holds, step by step."""

import math
from collections.abc import Iterator
from itertools import product

import pytest
import torch
from cse_testkit import Rig, compose, make_batch, make_context, make_part, tiny_corpus
from torch import Tensor

from cse_core.types import Batch, Negatives
from tests.fixtures.equations import equation
from tests.fixtures.methods import refusal


def batch_of(sentences: int, first: int, segments: int = 1) -> Batch:
    level = "sentence" if segments == 1 else "segment"
    return make_batch(
        sentences=sentences,
        segments=segments,
        level=level,
        rows=range(first, first + sentences),
        seed=first,
    )


def check(
    found: Negatives | None, kept: list[tuple[Tensor, Tensor]], forgetting: float
) -> Iterator[tuple[float, float]]:
    """Compare with ``kept``, batches of vectors and rows, the newest first; yield the weights."""
    if not kept:
        assert found is None
        return
    assert found is not None
    place = 0
    for age, (vectors, rows) in enumerate(kept, start=1):
        for vector, row in zip(vectors, rows, strict=True):
            assert torch.equal(found.vectors[place], vector)
            assert found.row[place] == row and found.age[place] == age
            for anchor in range(len(found.mask)):
                yield math.exp(float(found.log_weights[anchor, place])), 1 - forgetting * age
            place += 1
    assert len(found) == place and not found.mask.any()


@equation("IFCL", "Eq. 4, p = 1 - lambda * ceil(m / N)", "negatives hippocampus")
def test_a_trace_over_three_lengths() -> Iterator[tuple[float, float]]:
    """Order, ages, rows and weights, the last batch of an epoch shorter, against a slow list."""
    for (batches, forgetting), segments in product(((1, 0.5), (3, 0.1), (4, 0.0)), (1, 2)):
        level = "sentence" if segments == 1 else "segment"
        options = {"batches": batches, "forgetting": forgetting, "level": level, "view": "anchor"}
        store = make_part("negatives", "hippocampus", **options)
        kept: list[tuple[Tensor, Tensor]] = []
        for step in range(3 * batches + 2):
            batch = batch_of(1 if step % 4 == 3 else 3, first=5 * step, segments=segments)
            yield from check(store.candidates(batch, make_context(batch)), kept, forgetting)
            store.after_step(batch, make_context(batch))
            kept = [(batch.anchors, batch.row), *kept][:batches]


def test_it_logs_the_trace_of_its_rows() -> None:
    """Figure 3: how many rows have which age, and the coefficient of that age."""
    corpus = tiny_corpus(10)
    sets = ["negatives.hippocampus.batches=2", "negatives.hippocampus.forgetting=0.3"]
    made = compose(kinds={"negatives": ["hippocampus"]}, sets=sets, corpus=corpus)
    traces = [
        {
            key.removeprefix("hippocampus."): float(value)
            for key, value in each.logged.items()
            if key.startswith("hippocampus.age")
        }
        for each in Rig(made).step(4)
    ]
    first = {"age1.rows": 4.0, "age1.weight": 0.7}
    assert traces[:2] == [{}, first]
    assert traces[2] == first | {"age2.rows": 4.0, "age2.weight": pytest.approx(0.4)}
    assert traces[3] == traces[2] | {"age1.rows": 2.0}, "the last batch of an epoch is short"


def test_weights_that_would_vanish_are_refused() -> None:
    for batches, forgetting in ((10, 0.1), (4, 0.25), (2, 0.9)):
        sets = [f"negatives.hippocampus.batches={batches}",
                f"negatives.hippocampus.forgetting={forgetting}"]  # fmt: skip
        line = refusal(compose, kinds={"negatives": ["hippocampus"]}, sets=sets)
        assert line.startswith("negatives.hippocampus")
        assert "batches * forgetting must be below 1" in line
