"""Neighbours through faiss: how many of the exact ones, when it is taken, what it says."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from cse_cli.models import approximate
from cse_cli.models.approximate import FaissIndex, chosen_index, nearest
from cse_core.errors import CseError
from tests.fixtures.command_line import Cse, refused


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
    assert chosen_index("auto", many, queries)
    assert not chosen_index("auto", many - 1, queries)
    assert not chosen_index("auto", many, queries - 1), "measuring would find the exact ones"
    assert not chosen_index("exact", many, queries) and chosen_index("faiss", 3, 1)
    monkeypatch.setattr(approximate, "find_spec", lambda name: None)
    assert not chosen_index("auto", many, queries)
    with pytest.raises(CseError, match="faiss is not installed.*pip install faiss-cpu"):
        chosen_index("faiss", 3, 1)
    with pytest.raises(CseError, match="--index: unknown index.*did you mean exact"):
        chosen_index("exat", 3, 1)


def test_search_through_faiss(cse: Cse, sentences: Path) -> None:
    words = ("search", "starter", "a dog", "the planet", "--data", str(sentences), "--json")
    expected = json.loads(cse(*words).out)
    found = json.loads(cse(*words, "--index", "faiss").out)
    about = found.pop("index")
    assert about["recall"] == 1.0 and about["vectors"] == 24 and about["queries"] == 2
    for one, other in zip(found["queries"], expected["queries"], strict=True):
        assert [hit["text"] for hit in one["results"]] == [hit["text"] for hit in other["results"]]
    assert "faiss: 24 vectors" in cse(*words[:-1], "--index", "faiss").err
    refused(cse(*words, "--index", "hnsw"), "--index", "unknown index")


def test_titles_through_faiss(cse: Cse, tmp_path: Path) -> None:
    things = ("dog", "boat", "violin", "judge", "garden", "goal", "planet", "train", "river", "hat")
    lines = [
        {"id": n, "title": f"{how} {thing}", "paras": [[f"the {thing} is {how}", f"a {thing}"]]}
        for n, (thing, how) in enumerate((t, h) for t in things for h in ("old", "near", "green"))
    ]
    file = tmp_path / "docs.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)) + "\n", encoding="utf-8")
    words = ("eval", "starter", "--documents", str(file), "--no-baselines", "--json")
    (expected,) = json.loads(cse(*words).out)["results"].values()
    (found,) = json.loads(cse(*words, "--index", "faiss").out)["results"].values()
    about = found.pop("index")
    assert found["setting"] == expected["setting"] + ", through faiss"
    if about["recall"] == 1.0:
        assert [found[f"recall@{k}"] for k in (5, 10, 20)] == [
            expected[f"recall@{k}"] for k in (5, 10, 20)
        ]
    assert about["vectors"] == 30 and about["recall"] >= approximate.ENOUGH
    assert "faiss: 30 vectors" in cse(*words[:-1], "--index", "faiss").err
