"""``cse.Model.search``: what ``cse search`` does, from Python."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cse import TextEncoder
from cse_search.index import is_index
from cse_search.opened import Index, Texts
from cse_search.ranking import check_queries
from cse_search.reading import read_passages
from cse_search.reranking import check_level

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
    encode = TextEncoder(model.loaded, batch_tokens)
    asking = TextEncoder(queries_model.loaded, batch_tokens) if queries_model else None
    searched: Index | Texts
    if len(files) == 1 and is_index(files[0]):
        searched = Index(files[0], model.name, plugins=plugins, encode=encode, of_queries=asking)
        if note := searched.note:
            warnings.warn(note, stacklevel=3)
    else:
        check_level(level, None if asking is None else asking.name)
        passages = read_passages(files, plugins.registry)
        searched = Texts(passages, files[0], plugins, encode, asking)
    return searched.search(
        queries, top=top, bm25=bm25, level=level, rerank=rerank, rerank_top=rerank_top
    )
