"""Neighbours through faiss: how many of the exact ones, when it is taken, what it says."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from cse_cards import approximate
from cse_cards.approximate import FaissIndex, chosen_index, nearest

from cse_core.errors import CseError


def clustered(rows: int, seed: int = 0) -> approximate.Vectors:
    draw = np.random.default_rng(seed)
    centres = draw.normal(size=(50, 16))
    vectors = centres[draw.integers(50, size=rows)] + 0.7 * draw.normal(size=(rows, 16))
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(unit, dtype=np.float32)


def test_the_recall_that_it_says_is_that_of_all_queries() -> None:
    vectors, own = clustered(4000), np.arange(4000)
    index = FaissIndex(vectors, vectors, 10, own)
    _, found = index.search(vectors, 10, own)
    held = torch.from_numpy(vectors)
    wanted = nearest(held, held, 10, torch.from_numpy(own)).numpy()
    hits = [len(np.intersect1d(*pair)) / 10 for pair in zip(found, wanted, strict=True)]
    assert index.report.recall >= approximate.ENOUGH and index.report.queries == approximate.SAMPLE
    assert np.mean(hits) == pytest.approx(index.report.recall, abs=0.05)
    assert index.report.looked_at < index.report.lists, "most lists are not looked at"
    assert not (found == own[:, None]).any()
    assert all(len(set(row)) == 10 for row in found.tolist())
    text = str(index.report)
    assert "4,000 vectors" in text and f"{100 * index.report.recall:.1f} %" in text and "MB" in text


def test_exact_neighbours_are_those_of_loops() -> None:
    """Whatever is searched at once; with each query's own vector left out, and without."""
    given = torch.from_numpy(clustered(40))
    blocks = [(64, 64), (7, 5), (5, 40), (40, 3), (1, 1)]
    for (at_once, block), count, begin in itertools.product(blocks, (1, 4, 39), (None, 0, 13)):
        done: list[tuple[int, int]] = []
        queries = given if begin is None else given[begin:]
        own = None if begin is None else torch.arange(begin, 40)
        found = nearest(
            given, queries, count, own, at_once=at_once, block=block,
            progress=lambda one, of, done=done: done.append((one, of)),
        )  # fmt: skip
        assert found.dtype == torch.int32 and found.shape == (len(queries), count)
        for place, query in enumerate(queries):
            others = [j for j in range(40) if begin is None or j != begin + place]
            others.sort(key=lambda j: -float(query.double() @ given[j].double()))
            assert found[place].tolist() == others[:count], (at_once, block, count, begin)
        assert done[-1] == (len(queries), len(queries)) and len(done) == -(-len(queries) // at_once)


def test_short_lists_are_made_up_for() -> None:
    vectors = clustered(200)
    _, found = FaissIndex(vectors, vectors[:3], 199, np.arange(3)).search(
        vectors[:3], 199, np.arange(3)
    )
    for own, row in enumerate(found.tolist()):
        assert sorted([own, *row]) == list(range(200))


def test_auto_is_exact_up_to_a_million_and_without_faiss(monkeypatch: pytest.MonkeyPatch) -> None:
    many, queries = approximate.MANY + 1, approximate.SAMPLE + 1
    assert approximate.MANY == 1_000_000
    assert chosen_index("auto", many, queries, "i")
    assert not chosen_index("auto", many - 1, queries, "i")
    assert not chosen_index("auto", many, queries - 1, "i"), "measuring would find the exact ones"
    assert not chosen_index("exact", many, queries, "i") and chosen_index("faiss", 3, 1, "index")
    monkeypatch.setattr(approximate, "find_spec", lambda name: None)
    assert not chosen_index("auto", many, queries, "i")
    with pytest.raises(CseError, match="faiss is not installed.*pip install faiss-cpu"):
        chosen_index("faiss", 3, 1, "i")
    with pytest.raises(CseError, match="i: unknown index.*did you mean exact"):
        chosen_index("exat", 3, 1, "i")
