"""Functions behind the paper's studies."""

from __future__ import annotations

from pathlib import Path

from cse_infocse.shown import clusters_of_rounds, graph_of_document

import cse


def test_the_graph_of_a_document() -> None:
    found = graph_of_document({"model": "starter", "data": "starter", "neighbours": 1, "seed": 42})
    count = found["sentence count"]
    assert count == len(found["sentences"]) >= 8
    assert found["pair count"] == len(found["similarities"]) == count * (count - 1) // 2
    near = {(a, b): value for a, b, value in found["similarities"]}
    for one in range(count):  # each keeps the edge to its nearest
        nearest = max((value, pair) for pair, value in near.items() if one in pair)[1]
        assert list(nearest) in found["edges"]
    inside = {frozenset(pair) for pair in found["edges"]}
    for cluster in found["clusters"]:
        assert all(any(pair <= set(cluster) and at in pair for pair in inside) for at in cluster)
    assert sorted(at for cluster in found["clusters"] for at in cluster) == list(range(count))


def test_clusters_of_a_run_round_by_round(tmp_path: Path) -> None:
    options = {
        "data.limit": 200,
        "positives.idc.rounds": 2,
        "positives.idc.round_patience": 2,
        "train.max_steps": 1,
    }
    cse.train("infocse", dev="none", out=tmp_path / "run", quiet=True, options=options)
    found = clusters_of_rounds({"run": str(tmp_path / "run"), "seed": 42})
    assert [each["round"] for each in found["rounds"]] == [1, 2, 3]
    assert len(found["pairs of a round"]) == len(found["dropped since"]) == 3
    assert found["pairs of a round"][-1] > 0
    assert found["dropped since"][0] == 0
