"""Clusters and pairs against slow loops, stated orders, caps, rounds and their end."""

import itertools
import json
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from cse_infocse import graph, idc_kmeans
from cse_infocse.clusters import Idc, enough
from cse_infocse.documents import Documents, documents_of
from cse_infocse.options import IdcOptions
from cse_infocse.pairs import PairCollector, cluster_pairs, uniform
from cse_testkit import make_part, make_setup
from sklearn.cluster import MiniBatchKMeans

from cse_core.errors import CseError
from cse_core.parts import RoundContext
from cse_defaults.texts import Corpus
from plugins.infocse.tests.made_up import corpus_of, numbers_in
from tests.fixtures.equations import equation
from tests.fixtures.methods import round_context


def documents(lengths: Sequence[int]) -> Documents:
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Documents(np.arange(offsets[-1]), offsets)


def slow_clusters(vectors: torch.Tensor, neighbours: int) -> list[int]:
    """Cluster one document in loops: the lowest sentence of each sentence's component."""
    count = len(vectors)
    weights = (vectors @ vectors.T).tolist()
    edges = set()
    for i in range(count):
        others = sorted((j for j in range(count) if j != i), key=lambda j: (-weights[i][j], j))
        edges |= {(i, j) for j in others[:neighbours]}
    label = list(range(count))
    for _ in range(count):
        for i, j in edges:
            label[i] = label[j] = min(label[i], label[j])
    return label


@equation("InfoCSE", "Eqs. 2 and 3, graph and components", "positives idc", within=0)
def test_clusters_equal_a_loop() -> Iterator[tuple[Any, Any]]:
    """Whatever lies together in one block, and where long documents are cut into blocks."""
    lengths = [1, 2, 23, 5, 2, 9, 8, 1, 40, 7, 3]
    held = documents(lengths)
    for cells, neighbours in itertools.product((4_000_000, 60), (1, 2, 3, 50)):
        draws = torch.Generator().manual_seed(neighbours)
        # Small integers: many equally near sentences, and products without rounding.
        vectors = torch.randint(-2, 3, (sum(lengths), 3), generator=draws).double()
        with patch.object(graph, "_CELLS", cells):
            edges = graph.nearest_edges(vectors, held, neighbours)
        found = graph.components(*edges, len(vectors))
        wanted: list[int] = []
        for begin, end in itertools.pairwise(held.offsets.tolist()):
            wanted += [begin + i for i in slow_clusters(vectors[begin:end], neighbours)]
        yield found.tolist(), wanted


def test_cosine_ignores_lengths() -> None:
    vectors = torch.tensor([[1.0, 0.0], [0.9, 0.1], [9.0, 9.0], [8.0, 9.0]])
    held = documents([4])
    dot = graph.components(*graph.nearest_edges(vectors, held, 1), 4)
    cosine = graph.components(*graph.nearest_edges(vectors, held, 1, "cosine"), 4)
    assert dot.tolist() == [0, 0, 0, 0], "long vectors attract every sentence"
    assert cosine.tolist() == [0, 0, 2, 2]


@equation("InfoCSE", "Eq. 4, pairs of a component", "positives idc", within=0)
def test_all_pairs_of_a_cluster() -> Iterator[tuple[Any, Any]]:
    held = documents([6, 3, 1])
    cluster = np.array([0, 1, 0, 3, 1, 0, 6, 6, 6, 9])
    one, two = cluster_pairs(cluster, held, None, np.zeros)
    found = sorted(zip(one.tolist(), two.tolist(), strict=True))
    wanted = [(i, j) for i, j in itertools.combinations(range(10), 2) if cluster[i] == cluster[j]]
    yield found, wanted


def test_numbers_of_pairs_are_unranked() -> None:
    for size in (2, 3, 10, 101, 2000):
        one, two = cluster_pairs(np.zeros(size, dtype=np.int64), documents([size]), None, np.zeros)
        assert len(one) == size * (size - 1) // 2
        assert (one < two).all() and (np.diff(np.sort(one * size + two)) > 0).all()


def test_a_document_gives_a_capped_and_fair_share() -> None:
    held = documents([10, 3, 300])
    cluster = np.repeat(held.offsets[:-1], held.lengths)
    counts = np.zeros((10, 10), dtype=int)
    draw = uniform(torch.Generator().manual_seed(0))
    for _ in range(450):
        one, two = cluster_pairs(cluster, held, 5, draw)
        owner = held.document[one]
        assert np.bincount(owner).tolist() == [5, 3, 5]
        assert len(set(zip(one.tolist(), two.tolist(), strict=True))) == 13
        np.add.at(counts, (one[owner == 0], two[owner == 0]), 1)
    drawn = counts[np.triu_indices(10, 1)]
    assert drawn.sum() == 450 * 5 and drawn.min() > 25 and drawn.max() < 80, "50 each is fair"


def test_pairs_of_a_round_are_distinct_and_capped() -> None:
    corpus = Corpus.from_columns({"text": ["a", "b", "c", "a", "b", "d"]}, name="x")
    draw = uniform(torch.Generator().manual_seed(1))
    every = PairCollector(None, draw)
    every.add(np.array([0, 0]), np.array([1, 2]))
    every.add(np.array([4, 0]), np.array([3, 3]))
    assert every.distinct(corpus).tolist() == [[0, 0], [1, 2]], "b-a is a-b, a-a is nothing"
    some = PairCollector(3, draw)
    for row in range(5):
        some.add(np.array([row]), np.array([5]))
    assert some.distinct(corpus).shape == (2, 3)


def test_documents_may_be_interleaved_and_hold_a_sentence_twice() -> None:
    columns = {
        "text": ["a", "b", "a", "c", "x", "b", "d"],
        "document": ["1", "2", "1", "1", "3", "2", "2"],
    }
    held = documents_of(Corpus.from_columns(columns, name="x"), "positives.idc")
    assert held.rows.tolist() == [0, 3, 1, 6] and held.offsets.tolist() == [0, 2, 4]
    with pytest.raises(CseError, match="no document"):
        documents_of(Corpus.from_columns({"text": ["a", "b"]}, name="x"), "positives.idc")


def test_shards_hold_whole_documents() -> None:
    held = documents([4, 4, 9, 1, 2, 3])
    shards = list(held.shards(8))
    assert [shard.lengths.tolist() for shard in shards] == [[4, 4], [9], [1, 2, 3]]
    assert np.concatenate([shard.rows for shard in shards]).tolist() == held.rows.tolist()


class Asked:
    """A round's context whose encoder remembers how much it was given at once."""

    def __init__(self, corpus: Corpus, scores: Sequence[float | None] = ()) -> None:
        self.corpus, self.most, self.printed = corpus, 0, list[tuple[int, int]]()
        self.scores = list(scores)

    def encode(self, texts: Sequence[str]) -> torch.Tensor:
        self.most = max(self.most, len(texts))
        rows = [number for text in texts for number in numbers_in(text)]
        table = torch.randn(len(self.corpus), 6, generator=torch.Generator().manual_seed(3))
        return table[rows]

    def progress(self, done: int, total: int, what: str) -> None:
        self.printed.append((done, total))

    def context(self) -> RoundContext:
        given = {"round": len(self.scores) + 1, "scores": tuple(self.scores)}
        return round_context(self.corpus, encode=self.encode, progress=self.progress, **given)


def test_memory_is_one_shard_and_shards_change_nothing() -> None:
    asked = Asked(corpus_of(7, 12, 1, 30, 9, 25, 2, 14))
    rounds = {}
    for shard in (1, 40, 1000):
        asked.most, asked.printed = 0, []
        part: Any = make_part("positives", "idc", shard=shard, pairs_per_document=None)
        rounds[shard] = part.next_round(asked.context())
        assert asked.most <= max(shard, 30)
        assert asked.printed == sorted(asked.printed)
        assert asked.printed[-1] == (99, 99), "a document of one sentence is not encoded"
    for shard in (40, 1000):
        for name, values in rounds[1].pairs.items():
            assert np.array_equal(values, rounds[shard].pairs[name]), name


def test_pairs_carry_their_cluster() -> None:
    part: Any = make_part("positives", "idc")
    pairs = part.next_round(Asked(corpus_of(7, 12)).context()).pairs
    assert (pairs["cluster"] <= pairs["text"]).all()
    for cluster in np.unique(pairs["cluster"]):
        own = pairs["cluster"] == cluster
        members = set(pairs["text"][own].tolist()) | set(pairs["positive"][own].tolist())
        assert min(members) == cluster
        assert own.sum() == len(members) * (len(members) - 1) // 2


def test_kmeans_pairs_equal_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sentences go to their nearest centre; pairs are of one document."""
    corpus = corpus_of(7, 12, 30, 9)
    fitted: list[Any] = []

    class Watched(MiniBatchKMeans):  # type: ignore[misc]
        def fit(self, *given: Any) -> Any:
            fitted.append(super().fit(*given))
            return fitted[-1]

    monkeypatch.setattr(idc_kmeans, "MiniBatchKMeans", Watched)
    options = {"clusters": 3, "shard": 20, "pairs_per_document": None}
    asked = Asked(corpus)
    pairs = make_part("positives", "idc-kmeans", **options).next_round(asked.context()).pairs
    vectors = asked.encode(list(corpus.column("text")))
    centres = torch.from_numpy(fitted[0].cluster_centers_).to(vectors)
    label = [min(range(3), key=lambda k: float((v - centres[k]).norm())) for v in vectors]  # noqa: B023
    assert len(set(label)) == 3
    keys = list(zip(label, np.asarray(corpus.documents).tolist(), strict=True))
    both = itertools.combinations(range(len(keys)), 2)
    wanted = [(i, j, keys.index(keys[i])) for i, j in both if keys[i] == keys[j]]
    columns = (pairs[name].tolist() for name in ("text", "positive", "cluster"))
    assert sorted(zip(*columns, strict=True)) == wanted


def test_rounds_end() -> None:
    cases: list[tuple[list[float | None], int | None, int, bool]] = [
        ([], None, 1, False),
        ([None], None, 1, False),
        ([None, None], None, 1, True),
        ([None, None], 3, 1, False),
        ([None] * 3, 3, 1, True),
        ([50.0], None, 1, False),
        ([50.0, 60.0], None, 1, False),
        ([50.0, 60.0, 60.0], None, 1, True),
        ([50.0, 60.0, 59.0], None, 2, False),
        ([50.0, 60.0, 59.0, 58.0], None, 2, True),
        ([50.0, 60.0], 2, 1, True),
    ]
    for scores, rounds, patience, wanted in cases:
        assert enough(scores, rounds, patience) is wanted, (scores, rounds, patience)


def test_scores_of_a_start_are_not_compared() -> None:
    """A start may be better than the clusters behind it; their rounds end by their own scores."""
    asked = Asked(corpus_of(7, 12), [99.0])
    part: Any = make_part("positives", "idc")
    mined = 0
    for score in (10.0, 20.0, 30.0, 30.0, 0.0):
        if part.next_round(asked.context()) is None:
            break
        mined += 1
        asked.scores.append(score)
    assert mined == 4


def test_an_annotator_clusters_for_the_first_round_behind_a_start() -> None:
    asked = Asked(corpus_of(7, 12), [99.0])
    given: list[tuple[str, str | None, str]] = []

    def annotator(name: str, pool: str | None, option: str) -> Any:
        given.append((name, pool, option))
        return SimpleNamespace(encode=lambda texts: -asked.encode(texts).flip(1).cumsum(1))

    def made() -> Idc:
        return Idc(IdcOptions(annotator="a tuned model"), make_setup(load_model=annotator))

    plain: Any = make_part("positives", "idc")
    part = made()
    assert given == [("a tuned model", None, "annotator")]

    def clusters(miner: Any) -> list[int]:
        return list(miner.next_round(asked.context()).pairs["cluster"])

    own = clusters(plain)
    assert clusters(part) != own
    asked.scores.append(10.0)
    resumed = made()
    resumed.load_state_dict(part.state_dict())
    assert clusters(part) == clusters(resumed) == own


def turns(scores: Sequence[float | None], **options: Any) -> str:
    """Return the rounds of ``idc-labels`` behind a start, c of clusters and L of labels.

    The miner is made again before each round, as a resumed run makes it.
    """
    asked = Asked(corpus_of(7, 12), [99.0])
    kinds, state = "", None
    for score in (*scores, 0.0):
        part: Any = make_part("positives", "idc-labels", **options)
        if state is not None:
            part.load_state_dict(json.loads(json.dumps(state)))
        found = part.next_round(asked.context())
        if found is None:
            return kinds
        kinds += "c" if "cluster" in found.pairs else "L"
        state = part.state_dict()
        asked.scores.append(score)
    raise AssertionError(f"it goes on after {kinds}")


def test_turns_of_clusters_and_labels() -> None:
    unseen = [None] * 9
    cases: list[tuple[dict[str, Any], str, Any]] = [
        # Each stage until a round does not improve in it; the turns until labels do not improve.
        ({}, "cccLccLccLccc", [10, 20, 15, 50, 30, 30, 60, 40, 20, 55, 33, 34, 34]),
        ({"idc_after": False}, "cccLccLccL", [10, 20, 15, 50, 30, 30, 60, 40, 20, 55]),
        ({"idc_patience": 2}, "cccLcccccLccc", [9, 8, 7, 50, 3, 2, 4, 3, 3, 50, 3, 2, 1]),
        ({"idc_rounds": 2, "rounds": 1}, "ccLcc", [10, 20, 50, 10, 20]),
        ({"idc_rounds": 3, "rounds": 1}, "ccLccc", [10, 10, 50, 10, 20, 30]),
        ({"idc_rounds": 1, "round_patience": 2}, "cLcLcLcLc", [1, 5, 1, 6, 1, 6, 1, 5, 1]),
        ({"idc_rounds": 1, "idc_after": False}, "cLcLcL", [10, 20, 5, 25, 40, 24]),
        # Without dev sets: two rounds of each, or as many as are asked for.
        ({}, "ccLccLcc", unseen),
        ({"idc_rounds": 1, "rounds": 3, "idc_after": False}, "cLcLcL", unseen),
    ]
    for options, kinds, scores in cases:
        assert turns(scores, **options) == kinds
