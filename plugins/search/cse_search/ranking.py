"""Passages in the order of their likeness to queries, by vectors and by words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cse import fuse
from cse_core.errors import CseError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cse_core.model_card import SimilarityName
    from cse_search.late import Late, Several


def check_queries(queries: Sequence[str], top: int, bm25: float) -> None:
    """Refuse blank queries, fewer than one text wanted, and a share of BM25 not from 0 to 1."""
    if not 0 <= bm25 <= 1:
        raise CseError("must be from 0 to 1", where="--bm25", value=bm25)
    if top < 1:
        raise CseError("must be at least 1", where="--top", value=top)
    blank = [query for query in queries if not query.strip()]
    if blank or not queries:
        raise CseError("is blank", where="QUERY", value=blank[:1], hint="write what to look for")


def check_dimensions(asked: NDArray[np.float32], by: str, dimension: int, texts: str) -> None:
    """Refuse a model of queries, ``by``, of another dimension than that of the model of texts."""
    if asked.shape[1] != dimension:
        what = f"gives vectors of {asked.shape[1]} numbers, the model of the texts {dimension}"
        hint = f"name a model that was trained in the space of {texts}, such as by --recipe leaf"
        raise CseError(what, where="--queries-model", value=by, hint=hint)


def ranked(
    kind: SimilarityName,
    queries: Sequence[str],
    scores: NDArray[np.float32],
    by_words: NDArray[np.float32] | None,
    top: int,
    bm25: float,
    about: Callable[[set[int]], Mapping[int, Mapping[str, Any]]],
    by_late: tuple[Late, Callable[[Sequence[int]], Several]] | None = None,
) -> list[dict[str, Any]]:
    """Return for each query its first passages, as ``cse search --json`` has them.

    ``scores`` are similarities ``[Q, N]``, of equal ones the first passage comes first;
    ``by_words`` are scores of BM25 ``[Q, N]``, whose share is ``bm25``. ``about`` says what else is
    known of the passages that are found, by their places among the N. ``by_late`` orders the first
    ones again; its second gives the vectors of passages by their places.
    """
    import numpy as np

    order: NDArray[np.floating] = scores
    if by_words is not None:
        order = fuse(scores, by_words, bm25)
    depth = top if by_late is None else max(top, by_late[0].depth)
    best = np.argsort(-order, axis=1, kind="stable")[:, :depth].tolist()
    near: list[dict[int, tuple[float, int]]] = [{} for _ in queries]
    if by_late is not None:
        late, vectors = by_late
        for number, places in enumerate(best):
            found = late.scores(queries[number], vectors(places))
            near[number] = dict(zip(places, found, strict=True))
            best[number] = sorted(places, key=lambda place: -near[number][place][0])[:top]
    known = about({place for places in best for place in places})

    def hit(query: int, rank: int, place: int) -> dict[str, Any]:
        words = {} if by_words is None else {"bm25": round(float(by_words[query, place]), 4)}
        score, nearest = near[query].get(place, (0.0, -1))
        tokens = {"maxsim": round(score, 6), "nearest": nearest} if near[query] else {}
        numbers = {"score": order[query, place], kind: scores[query, place]}
        rounded = {name: round(float(number), 6) for name, number in numbers.items()}
        return {"rank": rank, **tokens, **rounded, **words, **known[place]}

    return [
        {
            "query": query,
            "similarity": kind,
            "results": [hit(number, rank, place) for rank, place in enumerate(places, 1)],
        }
        for number, (query, places) in enumerate(zip(queries, best, strict=True))
    ]
