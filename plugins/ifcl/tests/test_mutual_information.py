"""The estimates of Table 4, and what they are over."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
import torch
from cse_evaluation.pairs import PairSet, ScoredPair
from cse_testkit import Rig, compose, make_batch, make_context, make_part, tiny_corpus
from torch import Tensor

from tests.fixtures.equations import equation

PAIRS = PairSet(
    "made up",
    None,
    tuple(
        ScoredPair(f"a{i}", f"b{i}", score)
        for i, score in enumerate([5.0, 4.9, 5.0, 0.0, 5.0, 2.0, 4.0])
    ),
    (0.0, 5.0),
)


def encode(texts: Sequence[str]) -> np.ndarray:
    """Return vectors of which those of one number are near."""
    rows = []
    for text in texts:
        shared = np.random.default_rng(int(text[1:])).normal(size=8)
        own = np.random.default_rng(ord(text[0])).normal(size=8)
        rows.append(shared + 0.3 * own)
    return np.array(rows, dtype=np.float32)


def slow(anchors: Tensor, others: Tensor, temperature: float) -> float:
    total = 0.0
    for i, anchor in enumerate(anchors):
        masses = [
            math.exp(float(torch.cosine_similarity(anchor, other, dim=0)) / temperature)
            for other in others
        ]
        total += math.log(masses[i] / sum(masses))
    return math.log(len(anchors)) + total / len(anchors)


@equation("IFCL", "Eq. 10", "metric mutual-information")
def test_the_task_is_over_the_best_pairs() -> Iterator[tuple[float, float]]:
    for gold, chosen in ((None, [0, 2, 4]), (4.0, [0, 1, 2, 4, 6])):
        metric = make_part("metric", "mutual-information", gold=gold, temperature=0.2)
        numbers = metric.compute(encode, PAIRS)
        first, second = (
            torch.from_numpy(encode([f"{side}{i}" for i in chosen])).double() for side in "ab"
        )
        assert numbers["task_n"] == len(chosen) and set(numbers) == {"task", "task_n"}
        yield numbers["task"], slow(first, second, 0.2)
    metric = make_part("metric", "mutual-information", gold=6.0)
    assert metric.compute(encode, PAIRS) == {"task_n": 0.0}, "no pair, no estimate"


def test_twins_are_over_the_last_rows_of_training() -> None:
    metric = make_part("metric", "mutual-information", rows=7, temperature=0.2)
    seen: dict[str, list[Tensor]] = {"anchor": [], "identical": [], "positive": []}
    for step in range(4):
        batch = make_batch(
            sentences=3, views={"identical": "positive", "positive": "positive"}, seed=step
        )
        metric.after_step(batch, make_context(batch))
        for name, vectors in seen.items():
            vectors.insert(0, batch.views[name]["sentence"].vectors)
    numbers = metric.compute(encode, PAIRS)
    rows = {name: torch.cat(vectors)[:7] for name, vectors in seen.items()}
    for twin, view in (("identical", "identical"), ("fraternal", "positive")):
        assert numbers[f"{twin}_n"] == 7
        wanted = slow(rows["anchor"], rows[view], 0.2)
        assert numbers[twin] == pytest.approx(wanted, rel=1e-9)


def test_its_state_goes_on_and_a_run_without_twins_has_the_task_alone() -> None:
    corpus = tiny_corpus(8)
    sets, kinds = ["metric.mutual-information.rows=6"], {"metric": ["mutual-information"]}
    twins = compose(kinds={"loss": ["twins"], **kinds}, sets=sets, corpus=corpus)  # type: ignore[dict-item]
    one, other = (Rig(twins) for _ in range(2))
    one.step(3)
    part, fresh = (rig.session.parts["metric.mutual-information"] for rig in (one, other))
    fresh.load_state_dict(part.state_dict())
    assert part.compute(encode, PAIRS) == fresh.compute(encode, PAIRS)
    assert part.compute(encode, PAIRS)["fraternal_n"] == 6
    plain = Rig(compose(kinds={"metric": ["mutual-information"]}, corpus=corpus))
    plain.step(2)
    numbers = plain.session.parts["metric.mutual-information"].compute(encode, PAIRS)
    assert set(numbers) == {"fraternal", "fraternal_n", "task", "task_n"}
