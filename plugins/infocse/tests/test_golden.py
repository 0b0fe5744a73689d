"""Numbers computed from the paper's equations; parts and core together give the same."""

from __future__ import annotations

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
from tests.shared import golden, tensor


@pytest.fixture(scope="module")
def numbers() -> dict[str, Any]:
    found: dict[str, Any] = golden("infocse_idc")
    return found


def test_clusterings(numbers: dict[str, Any]) -> None:
    assert len(numbers["clustering_cases"]) == 6
    for case in numbers["clustering_cases"]:
        vectors, weights = tensor(case["embeddings"]), tensor(case["weights_inner_product"])
        assert torch.allclose(vectors @ vectors.T, weights, rtol=0, atol=numbers["suggested_atol"])
        count = len(vectors)
        document = Documents(np.arange(count), np.array([0, count]))
        edges = nearest_edges(vectors, document, case["K"])
        cluster = components(*edges, count)
        pairs = cluster_pairs(cluster, document, None, np.zeros)
        both = zip(*map(np.ndarray.tolist, edges), strict=True)
        assert {tuple(sorted(edge)) for edge in both} == {tuple(edge) for edge in case["edges"]}
        members = {tuple(np.flatnonzero(cluster == each).tolist()) for each in cluster}
        assert members == {tuple(each) for each in case["clusters"]}
        found = sorted(zip(*map(np.ndarray.tolist, pairs), strict=True))
        assert found == [tuple(pair) for pair in case["positive_pairs_unordered"]]


def test_loss(numbers: dict[str, Any]) -> None:
    """The recipe's loss with the paper's inner product and no temperature."""
    case, rows = numbers["loss_case"], torch.arange(4)
    corpus = tiny_corpus(columns=("document", "title"))
    vectors = {
        view: {"sentence": Embeddings(tensor(case[name]), rows, rows * 0, rows * 0 + 1)}
        for view, name in (("anchor", "anchors"), ("positive", "positives"))
    }
    keys = CorpusKeys(torch.tensor(case["document_of_pair"]), rows)
    roles: Any = {"anchor": "anchor", "positive": "positive"}
    for same_document, name in (("mask", "same_document_masked"), ("keep", "unmasked")):
        sets = ["loss.infonce.similarity=dot", "loss.infonce.temperature=1",
                f"loss.infonce.same_document={same_document}"]  # fmt: skip
        rig = Rig(compose(recipe="infocse", sets=sets, corpus=corpus))
        found = Objectives(rig.session._loop.assembly)(
            vectors, roles, rows, keys, make_context()
        ).value
        assert found is not None and found.dtype == torch.float64
        wanted = case[f"loss_mean_{name}"]
        assert abs(float(found) - wanted) <= numbers["suggested_atol"]
