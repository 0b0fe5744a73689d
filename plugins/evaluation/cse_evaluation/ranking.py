"""Judged queries: documents ranked for each by their vectors, and by BM25, as trec_eval scores it.

The measures are those of trec_eval (pytrec_eval-terrier): nDCG with the relevance itself as gain
and log2(rank + 1) as discount, recall, average precision and the reciprocal rank, of the first
1,000 documents. Equal scores are ordered by id, the last one first, as trec_eval does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from cse import Bm25, TextEncoder, fuse, maxsim, similarities, unit, units_of
from cse_core.errors import CseError
from cse_core.suites import DevSet, Encode, Progress, in_role, similarity_of
from cse_evaluation.collections import Collection
from cse_evaluation.geometry import spread_of
from cse_evaluation.results import Baseline, Result, rounded
from cse_evaluation.vectors import EncodedTexts

MEASURES = ("ndcg@10", "recall@10", "recall@100", "mrr@10", "map")
"""What each query has, from 0 to 1; ``map`` is its average precision."""
DEPTH = 1000
"""Documents that are ranked for a query."""
LATE = 50
"""Documents of a query that several vectors order, as ``cse search --level`` does."""
SHARE = 0.3
"""Of BM25 in the ranking by both."""
_TEXTS, _CELLS, _SAMPLE = 2048, 2**25, 1000


class Ranker:
    """Ranks the documents of a collection by scores, and measures the rankings."""

    def __init__(self, collection: Collection) -> None:
        self.queries, self._judgements = list(collection.queries), collection.judgements
        # The order of equal scores: by the bytes of the id, the last one first.
        ids = sorted(collection.documents, key=str.encode, reverse=True)
        self._ids = np.array(ids, dtype=object)
        self.texts = collection.texts
        rows = {text: row for row, text in enumerate(self.texts)}
        self._row = np.array([rows[collection.documents[doc]] for doc in ids])
        self._itself = {doc: row for row, doc in enumerate(ids) if doc in collection.own_documents}

    def measure(self, scores: Iterator[NDArray[np.floating]]) -> NDArray[np.float64]:
        """Return ``MEASURES`` of each query ``[Q, 5]``.

        ``scores`` has for blocks of the queries the score ``[block, texts]`` of each distinct text;
        one that is not above minus infinity is not ranked.
        """
        from pytrec_eval import RelevanceEvaluator

        wanted = {"ndcg_cut.10", "recall.10,100", "map", "recip_rank"}
        rows: list[list[float]] = []
        for block in scores:
            asked = self.queries[len(rows) : len(rows) + len(block)]
            judged = {query: dict(self._judgements[query]) for query in asked}
            ranked = {
                query: self._ranked(query, row) for query, row in zip(asked, block, strict=True)
            }
            measured = RelevanceEvaluator(judged, wanted).evaluate(ranked)
            for query in asked:
                # A query for which nothing is ranked has no measures.
                values = measured.get(query, {})
                first = values.get("recip_rank", 0.0)
                rows.append([
                    *(values.get(name, 0.0) for name in ("ndcg_cut_10", "recall_10", "recall_100")),
                    first if first > 1 / 10.5 else 0.0,
                    values.get("map", 0.0),
                ])  # fmt: skip
        return np.array(rows)

    def own_columns(self, queries: Sequence[str]) -> Iterator[tuple[int, int]]:
        """Yield the row of each query that is a document itself, and the column of its text."""
        for row, query in enumerate(queries):
            if query in self._itself:
                yield row, int(self._row[self._itself[query]])

    def _ranked(self, query: str, scores: NDArray[np.floating]) -> dict[str, float]:
        """Return the first documents by id, with numbers that fall from one to the next."""
        values = scores[self._row]
        if query in self._itself:
            values[self._itself[query]] = -np.inf
        known = np.flatnonzero(values > -np.inf)
        if len(known) > DEPTH:
            least = np.partition(values[known], len(known) - DEPTH)[len(known) - DEPTH]
            known = known[values[known] >= least]
        order = known[np.argsort(-values[known], kind="stable")][:DEPTH]
        return {str(self._ids[row]): float(-rank) for rank, row in enumerate(order)}


def query_vectors(
    encode: Encode,
    collection: Collection,
    ranker: Ranker,
    progress: Progress | None = None,
    asking: Encode | None = None,
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the vectors of the queries ``[Q, D]`` and of the ranker's texts ``[N, D]``.

    ``asking`` encodes the queries, by default as ``encode`` does.
    """
    read = in_role(encode, "document")
    blocks = []
    for start in range(0, len(ranker.texts), _TEXTS):
        some = ranker.texts[start : start + _TEXTS]
        blocks.append(EncodedTexts(read, some)(some))
        if progress is not None:
            done = start + len(some)
            progress(done, len(ranker.texts), f"documents of {collection.name}")
    queries = list(collection.queries.values())
    asked = EncodedTexts(in_role(asking or encode, "query"), queries)(queries)
    read_as = np.concatenate(blocks)
    if asked.shape[1] != read_as.shape[1]:
        what = f"gives vectors of {asked.shape[1]} numbers, the model {read_as.shape[1]}"
        hint = "name a model that was trained in the model's space"
        raise CseError(what, where="--queries-model", hint=hint)
    return asked, read_as


def measure_vectors(
    kind: Any,
    asked: NDArray[np.float32],
    read: NDArray[np.float32],
    ranker: Ranker,
    fused: Collection | None = None,
    late: LateOrder | None = None,
) -> NDArray[np.float64]:
    """Return ``MEASURES`` of each query ``[Q, 5]`` by the similarity of vectors.

    ``asked`` are those of the queries ``[Q, D]``, ``read`` those of the ranker's texts ``[N, D]``.
    With ``fused`` BM25 of this collection has its share in the ranking; with ``late`` vectors of
    another level order the first documents.
    """
    if kind == "cosine":
        kind, asked, read = "dot", *(unit(part).astype(np.float32) for part in (asked, read))
    step = max(1, _CELLS // len(read))

    def scores() -> Iterator[NDArray[np.floating]]:
        for start in range(0, len(asked), step):
            near: NDArray[np.floating] = similarities(kind, asked[start : start + step], read)
            if fused is not None:
                queries = dict([*fused.queries.items()][start : start + step])
                words = fused.words.of_queries([*queries.values()])
                for row, own in ranker.own_columns([*queries]):  # no text is nearer, none is ranked
                    near[row, own], words[row, own] = np.delete(near[row], own).mean(), 0.0
                near = fuse(near, words, SHARE)
            yield near if late is None else late(near, start)

    return ranker.measure(scores())


class LateOrder:
    """Orders the first documents of queries by several vectors of each text (MaxSim)."""

    def __init__(self, encode: TextEncoder, collection: Collection, level: str) -> None:
        self._encode, self._level, self._texts = encode, level, collection.texts
        queries = [*collection.queries.values()]
        self._asked = [unit(rows) for rows in encode.several(queries, level, "query")]

    def __call__(self, scores: NDArray[np.floating], start: int) -> NDArray[np.floating]:
        """Return scores ``[Q, N]`` of the queries from ``start`` on, the first ``LATE`` raised."""
        depth = min(LATE, scores.shape[1])
        first = np.argsort(-scores, axis=1, kind="stable")[:, :depth]
        near = np.empty(first.shape)
        wanted = np.unique(first)
        some = (self._texts[place] for place in wanted)
        done = 0
        for _, vectors in self._encode.several_blocks(some, self._level, "document"):
            made = dict(zip(wanted[done : done + len(vectors)].tolist(), vectors, strict=True))
            done += len(vectors)
            for query, rank in np.argwhere(np.isin(first, [*made])):
                rows = unit(made[int(first[query, rank])])
                near[query, rank] = maxsim(self._asked[start + query], rows)
        above = scores.max(axis=1, keepdims=True) + 1 + near - near.min(axis=1, keepdims=True)
        raised = scores.astype(np.float64)
        np.put_along_axis(raised, first, above, axis=1)
        return raised


def mean_scores(measured: NDArray[np.float64]) -> dict[str, float]:
    """Return the means x100 of ``MEASURES`` over queries ``[Q, 5]``."""
    return dict(zip(MEASURES, map(float, 100 * measured.mean(axis=0)), strict=True))


def score_collection(
    encode: Encode,
    collection: Collection,
    words: Baseline | None = None,
    progress: Progress | None = None,
    *,
    asking: Encode | None = None,
    level: str | None = None,
) -> Result:
    """Score an encoder on a test collection; the items are ``MEASURES`` of each query.

    Documents are title and text, cut where the model ends. Queries and documents have the
    model's prompts for them, and are compared as the model says. With ``words``, what
    ``score_words`` returned for the collection, the model is fused with BM25, too. ``asking``
    encodes the queries in its place. Vectors of a ``level`` order the first ``LATE`` documents.
    """
    ranker, kind = Ranker(collection), similarity_of(encode)
    asked, read = query_vectors(encode, collection, ranker, progress, asking)
    late = None if level is None else LateOrder(cast(TextEncoder, encode), collection, level)
    measured = measure_vectors(kind, asked, read, ranker, late=late)
    setting = f"query to title and text, {kind}, the first {DEPTH:,} documents"
    facts: dict[str, Any] = {
        "queries": len(collection.queries),
        "documents": len(collection.documents),
        "left_out": dict(collection.counts),
        "fingerprint": collection.fingerprint,
    }
    if words is not None:
        fused = measure_vectors(kind, asked, read, ranker, collection)
        facts["with_bm25"] = {"share": SHARE, **rounded(mean_scores(fused))}
    if level is not None:
        setting += f", {LATE} of them by MaxSim of level {level}"
        facts["by_one_vector"] = rounded(mean_scores(measure_vectors(kind, asked, read, ranker)))
    if asking is not None:
        setting += f", queries by {getattr(asking, 'name', 'another model')}"
    return Result.of(
        collection.name,
        mean_scores(measured),
        facts,
        split=collection.split,
        setting=setting,
        words=words,
        items=measured,
    )


def score_words(collection: Collection) -> Baseline:
    """Score BM25 and name its units; a text without a word of the query has no rank."""
    ranker = Ranker(collection)

    def scores() -> Iterator[NDArray[np.floating]]:
        for text in collection.queries.values():
            values = collection.words.scores(text)
            yield np.where(values > 0, values, -np.inf)[None]

    means = rounded(mean_scores(ranker.measure(scores())))
    units = units_of(collection.queries.values())[1]
    return {"bm25": means, "lexical": {**Bm25.ABOUT, "units": units}}


@dataclass(frozen=True)
class CollectionDevSet(DevSet):
    """A test collection that training is scored on."""

    collection: Collection

    @classmethod
    def of(cls, collection: Collection) -> CollectionDevSet:
        """Return the dev set of a collection; ``ndcg@10`` is its usual score."""
        return cls(collection.name, MEASURES, len(collection.documents), collection)

    def scored_texts(self) -> Iterable[str]:
        """List the queries; unsupervised training on the documents sees none of their answers."""
        return self.collection.queries.values()

    def score(self, encode: Encode) -> dict[str, float]:
        """Return ``MEASURES`` (x100), ``mean_cosine`` and ``effective_rank`` of some documents."""
        ranker = Ranker(self.collection)
        asked, read = query_vectors(encode, self.collection, ranker)
        scores = mean_scores(measure_vectors(similarity_of(encode), asked, read, ranker))
        return scores | spread_of(unit(read[:_SAMPLE]))
