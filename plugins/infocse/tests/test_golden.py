"""Numbers computed from the paper's equations; parts and core together give the same."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch
from cse_infocse.documents import Documents
from cse_infocse.graph import components, nearest_edges
from cse_infocse.pairs import cluster_pairs
from cse_testkit import Rig, compose, make_context, tiny_corpus

from cse_core.engine.objective import Objectives
from cse_core.types import CorpusKeys, Embeddings
from tests.shared import shared_path


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    text = shared_path("golden/infocse_idc.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def one_document(count: int) -> Documents:
    return Documents(np.arange(count), np.array([0, count]))


def clustered(vectors: torch.Tensor, documents: Documents, neighbours: int) -> Any:
    edges = nearest_edges(vectors, documents, neighbours)
    cluster = components(*edges, len(documents.rows))
    pairs = cluster_pairs(cluster, documents, None, np.zeros)
    return edges, cluster, pairs


def as_sets(cluster: Any) -> set[tuple[int, ...]]:
    return {tuple(np.flatnonzero(cluster == each).tolist()) for each in np.unique(cluster)}


@pytest.mark.parametrize("number", range(6))
def test_clusterings(golden: dict[str, Any], number: int) -> None:
    case = golden["clustering_cases"][number]
    vectors = torch.tensor(case["embeddings"], dtype=torch.float64)
    weights = torch.tensor(case["weights_inner_product"], dtype=torch.float64)
    assert torch.allclose(vectors @ vectors.T, weights, rtol=0, atol=golden["suggested_atol"])
    edges, cluster, pairs = clustered(vectors, one_document(len(vectors)), case["K"])
    undirected = {tuple(sorted(edge)) for edge in zip(*map(np.ndarray.tolist, edges), strict=True)}
    assert undirected == {tuple(edge) for edge in case["edges"]}
    assert as_sets(cluster) == {tuple(each) for each in case["clusters"]}
    found = sorted(zip(*map(np.ndarray.tolist, pairs), strict=True))
    assert found == [tuple(pair) for pair in case["positive_pairs_unordered"]]


@pytest.mark.parametrize("neighbours", [1, 2])
def test_clusterings_side_by_side(golden: dict[str, Any], neighbours: int) -> None:
    """Several documents at once are what each is alone."""
    cases = [each for each in golden["clustering_cases"] if each["K"] == neighbours]
    sizes = [each["n_sentences"] for each in cases]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    vectors = torch.cat([torch.tensor(each["embeddings"]).double() for each in cases])
    documents = Documents(np.arange(len(vectors)), offsets)
    _, cluster, pairs = clustered(vectors, documents, neighbours)
    wanted = {
        tuple(int(start) + i for i in each)
        for start, case in zip(offsets, cases, strict=False)
        for each in case["clusters"]
    }
    assert as_sets(cluster) == wanted
    assert len(pairs[0]) == sum(len(each["positive_pairs_unordered"]) for each in cases)


@pytest.mark.parametrize("same_document", ["mask", "keep"])
def test_loss(golden: dict[str, Any], same_document: str) -> None:
    """The recipe's loss with the paper's inner product and no temperature."""
    case = golden["loss_case"]
    corpus = tiny_corpus(columns=("document", "title"))
    sets = ["loss.infonce.similarity=dot", "loss.infonce.temperature=1"]
    sets.append(f"loss.infonce.same_document={same_document}")
    composition = compose(recipe="infocse", sets=sets, corpus=corpus)
    objectives = Objectives(Rig(composition, corpus).assembly)
    rows = torch.arange(4)
    vectors = {}
    for view, name in (("anchor", "anchors"), ("positive", "positives")):
        own = torch.tensor(case[name], dtype=torch.float64)
        vectors[view] = {"sentence": Embeddings(own, rows, rows * 0, rows * 0 + 1)}
    keys = CorpusKeys(torch.tensor(case["document_of_pair"]), rows)
    roles: Any = {"anchor": "anchor", "positive": "positive"}
    found = objectives(vectors, roles, rows, keys, make_context())
    name = "masked" if same_document == "mask" else "unmasked"
    wanted = case[f"loss_mean_{'same_document_' if name == 'masked' else ''}{name}"]
    assert found.value is not None and found.value.dtype == torch.float64
    assert abs(float(found.value) - wanted) <= golden["suggested_atol"]
