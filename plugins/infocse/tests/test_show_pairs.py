"""The clusters of a run, as ``cse data show-pairs`` and a study show them."""

import json
from pathlib import Path

import pytest
from cse_infocse.shown import clusters_of_rounds, graph_of_document
from cse_testkit import tiny_corpus

from cse_cli.main import run
from tests.fixtures.methods import finished

CORPUS = tiny_corpus(columns=("document", "title"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of four rounds."""
    sets = ["train.max_steps=1", "data.shuffle=true"]
    return finished(tmp_path_factory.mktemp("pairs"), "infocse", *sets, corpus=CORPUS)


def test_clusters_of_a_document_round_by_round(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["data", "show-pairs", str(folder), "--document", "document 1"]
    assert run([*words, "--json"]) == 0
    rounds = json.loads(capsys.readouterr().out)["rounds"]
    own = set(CORPUS.column("text").take([4, 5, 6, 7]))
    assert [each["round"] for each in rounds] == [1, 2, 3, 4]
    for each in rounds:
        shown = [text for cluster in each["clusters"] for text in cluster] + each["unpaired"]
        assert set(shown) == own and len(shown) == 4 and each["pairs"] >= 2
    assert run(words) == 0
    printed = capsys.readouterr().out
    assert "round 2:" in printed and "cluster 1" in printed
    assert run(["data", "show-pairs", str(folder), "--rows", "2"]) == 0
    assert run([*words[:-1], "no such"]) == 2
    assert "no such document" in capsys.readouterr().err
    assert run(["data", "show-pairs", str(tmp_path)]) == 2
    assert "is not a run" in capsys.readouterr().err


def test_clusters_of_a_study_round_by_round(folder: Path) -> None:
    found = clusters_of_rounds({"run": str(folder), "seed": 42})
    assert [each["round"] for each in found["rounds"]] == [1, 2, 3, 4]
    assert len(found["pairs of a round"]) == len(found["dropped since"]) == 4
    assert found["pairs of a round"][-1] > 0
    assert found["dropped since"][0] == 0


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
