"""Neighbours through faiss: how many of the exact ones, when it is taken, what it says."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
import torch
from cse_cards import approximate
from cse_cards.approximate import FaissIndex, nearest, through_faiss

from cse_core.errors import CseError


def clustered(rows: int, seed: int = 0) -> approximate.Vectors:
    draw = np.random.default_rng(seed)
    centres = draw.normal(size=(50, 16))
    vectors = centres[draw.integers(50, size=rows)] + 0.7 * draw.normal(size=(rows, 16))
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(unit, dtype=np.float32)


def test_the_recall_that_it_says_is_that_of_all_queries() -> None:
    vectors, own = clustered(4000), np.arange(4000)
    index = FaissIndex(vectors, 10)
    found = index.search(vectors, 10, own)
    held = torch.from_numpy(vectors)
    wanted = nearest(held, held, 10, torch.from_numpy(own)).numpy()
    hits = [len(np.intersect1d(*pair)) / 10 for pair in zip(found, wanted, strict=True)]
    assert index.recall >= approximate.ENOUGH
    assert np.mean(hits) == pytest.approx(index.recall, abs=0.05)
    assert not (found == own[:, None]).any()
    assert all(len(set(row)) == 10 for row in found.tolist())
    said = r"faiss: 4,000 vectors in (\d+) lists, (\d+) looked at: finds ([\d.]+) % of the exact "
    said += r"nearest 10 \(of 256 queries\); 0 MB, made in \d+ s"
    report = re.fullmatch(said, index.report)
    assert report and int(report[2]) < int(report[1]), "most lists are not looked at"
    assert report[3] == f"{100 * index.recall:.1f}"


def test_exact_neighbours_are_those_of_loops() -> None:
    """Whatever is searched at once."""
    given = torch.from_numpy(clustered(40))
    blocks = [(64, 64), (7, 5), (5, 40), (40, 3), (1, 1)]
    for (at_once, block), count, begin in itertools.product(blocks, (1, 4, 39), (0, 13)):
        done: list[tuple[int, int]] = []
        queries, own = given[begin:], torch.arange(begin, 40)
        found = nearest(
            given, queries, count, own, at_once=at_once, block=block,
            progress=lambda one, of, done=done: done.append((one, of)),
        )  # fmt: skip
        assert found.dtype == torch.int32 and found.shape == (len(queries), count)
        for place, query in enumerate(queries):
            others = [j for j in range(40) if j != begin + place]
            others.sort(key=lambda j: -float(query.double() @ given[j].double()))
            assert found[place].tolist() == others[:count], (at_once, block, count, begin)
        assert done[-1] == (len(queries), len(queries)) and len(done) == -(-len(queries) // at_once)


def test_short_lists_are_made_up_for() -> None:
    vectors = clustered(200)
    found = FaissIndex(vectors, 199).search(vectors[:3], 199, np.arange(3))
    for own, row in enumerate(found.tolist()):
        assert sorted([own, *row]) == list(range(200))


def test_auto_is_exact_up_to_a_million_and_without_faiss(monkeypatch: pytest.MonkeyPatch) -> None:
    many = approximate.MANY + 1
    assert approximate.MANY == 1_000_000
    assert through_faiss("auto", many, "i") and not through_faiss("auto", many - 1, "i")
    assert not through_faiss("exact", many, "i") and through_faiss("faiss", 3, "i")
    monkeypatch.setattr(approximate, "find_spec", lambda name: None)
    assert not through_faiss("auto", many, "i")
    with pytest.raises(CseError, match="faiss is not installed.*pip install faiss-cpu"):
        through_faiss("faiss", 3, "i")
