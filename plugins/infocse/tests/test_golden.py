"""Numbers computed from the paper's equations; parts and core together give the same."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from cse_infocse.documents import Documents
from cse_infocse.graph import components, nearest_edges
from cse_infocse.pairs import cluster_pairs
from cse_testkit import Rig, compose, make_context, make_part, tiny_corpus
from torch import Tensor

from cse_core.types import CorpusKeys, Embeddings
from cse_engine.step.objective import Objectives
from tests.fixtures.equations import equation
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


def loss_of(
    anchors: Any, positives: Any, documents: list[int], same_document: str, in_batch: str = "target"
) -> Tensor:
    """Return the recipe's loss with the paper's inner product and no temperature."""
    rows = torch.arange(len(documents))
    corpus = tiny_corpus(columns=("document", "title"))
    vectors = {
        view: {"sentence": Embeddings(tensor(given), rows, rows * 0, rows * 0 + 1)}
        for view, given in (("anchor", anchors), ("positive", positives))
    }
    keys = CorpusKeys(torch.tensor(documents), rows)
    roles: Any = {"anchor": "anchor", "positive": "positive"}
    options = {"similarity": "dot", "temperature": 1, "same_document": same_document}
    sets = [f"loss.infonce.{name}={value}" for name, value in options.items()]
    sets.append(f"loss.infonce.in_batch={in_batch}")
    rig = Rig(compose(recipe="infocse", sets=sets, corpus=corpus))
    found = Objectives(rig.session._loop.assembly)(vectors, roles, rows, keys, make_context()).value
    assert found is not None and found.dtype == torch.float64
    return found


def test_loss(numbers: dict[str, Any]) -> None:
    case = numbers["loss_case"]
    for same_document, name in (("mask", "same_document_masked"), ("keep", "unmasked")):
        given = (case["anchors"], case["positives"], case["document_of_pair"])
        wanted = case[f"loss_mean_{name}"]
        found = float(loss_of(*given, same_document))
        assert abs(found - wanted) <= numbers["suggested_atol"]


@equation("InfoCSE", "Eq. 1 with -log", "loss.infonce of recipe infocse")
def test_loss_in_loops() -> Iterator[tuple[Tensor, float]]:
    """Both readings of the batch's sentences; pairs 0 and 2 are of one document, masked."""
    draws = torch.Generator().manual_seed(0)
    one, two = torch.randn(2, 5, 4, dtype=torch.float64, generator=draws)
    documents = [0, 1, 0, 2, 3]
    for in_batch, sides in (("target", (two,)), ("both", (two, one))):
        total = 0.0
        for i in range(5):
            own = math.exp(float(one[i] @ two[i]))
            others = (j for j in range(5) if documents[j] != documents[i])
            mass = own + sum(math.exp(float(one[i] @ side[j])) for j in others for side in sides)
            total -= math.log(own / mass)
        found = loss_of(one.tolist(), two.tolist(), documents, "mask", in_batch)
        yield found, total / 5


@equation("InfoCSE", "the vector of a document", "pool sentences")
def test_a_document_is_the_mean_of_its_sentences() -> Iterator[tuple[Tensor, Tensor]]:
    owner = torch.tensor([4, 4, 4, 7, 9, 9])
    slot, length = torch.tensor([0, 1, 2, 0, 0, 1]), torch.tensor([3, 1, 9, 2, 5, 5])
    draws = torch.Generator().manual_seed(0)
    vectors = torch.randn(6, 8, dtype=torch.float64, generator=draws).requires_grad_(True)
    found = make_part("pool", "sentences").join(Embeddings(vectors, owner, slot, length))
    means = [(vectors[0] + vectors[1] + vectors[2]) / 3, vectors[3], (vectors[4] + vectors[5]) / 2]
    yield found.vectors, torch.stack(means)
    (gradient,) = torch.autograd.grad(found.vectors.sum(), vectors)
    yield gradient[:, 0], [1 / 3, 1 / 3, 1 / 3, 1, 1 / 2, 1 / 2]
    assert found.owner.tolist() == [4, 7, 9] and found.length.tolist() == [13, 2, 10]
