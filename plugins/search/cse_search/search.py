"""``cse.Model.search``: what ``cse search`` does, from Python."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cse import TextEncoder, load
from cse_search.index import index_of, is_index, queries_model_of
from cse_search.late import Late
from cse_search.ranking import check_queries, nearest
from cse_search.reading import read_passages
from cse_search.reranking import Reranker, check_level, check_rerank

if TYPE_CHECKING:
    from cse import Model
    from cse_cli.api import Installed


def search(
    plugins: Installed,
    model: Model,
    queries: Sequence[str],
    files: Sequence[str],
    *,
    top: int = 5,
    bm25: float = 0,
    level: str | None = None,
    rerank: str | None = None,
    rerank_top: int | None = None,
    batch_tokens: int | None = None,
    queries_model: Model | None = None,
) -> list[dict[str, Any]]:
    """Find the passages nearest to each query, as ``cse.Model.search`` does.

    Warns where the files of an index have changed since it was made.

    Args:
        plugins: The installed plugins.
        model: Encodes the texts, and the queries.
        queries: What to look for.
        files: The folder of an index, or files and data sets as ``--data`` takes them.
        top: Passages for each query.
        bm25: Share of BM25 in the order of the texts, 0 to 1.
        level: A level of the model's vectors, such as ``token``, that orders the first passages.
        rerank: A cross-encoder that orders the first ``rerank_top`` passages again.
        rerank_top: 50 by default, or ``top`` if that is more.
        batch_tokens: Tokens that the encoder is given at once.
        queries_model: Encodes the queries in the place of ``model``; by default that of the index.

    Raises:
        CseError: If a query or a file is wrong, or another model made the index.
    """
    check_queries(queries, top, bm25)
    depth = check_rerank(rerank, rerank_top, top, level)
    count = top if rerank is None else depth
    again = None if rerank is None else Reranker(rerank, plugins.registry)
    if len(files) == 1 and is_index(files[0]):
        index = index_of(files[0], model.name, plugins.registry, words=bm25 > 0)
        if note := index.note:
            warnings.warn(note, stacklevel=3)
        name = None if queries_model else queries_model_of(index, plugins.registry)
        check_level(level, queries_model.name if queries_model else name)
        asker = queries_model or (load(name) if name else model)
        encode = TextEncoder(asker.loaded, batch_tokens)
        late = None if level is None else Late(encode, level, depth)
        another = queries_model is not None
        results = index.nearest(encode, queries, count, bm25, late, by_another=another)
    else:
        check_level(level, queries_model.name if queries_model else None)
        passages = read_passages(files, plugins.registry)
        encode = TextEncoder(model.loaded, batch_tokens)
        asked = TextEncoder(queries_model.loaded, batch_tokens) if queries_model else None
        late = None if level is None else Late(encode, level, depth)
        results = nearest(encode, queries, passages, count, bm25, of_queries=asked, late=late)
    return results if again is None else again.reranked(results, top)
