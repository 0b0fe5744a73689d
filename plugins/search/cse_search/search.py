"""``cse.Model.search``: what ``cse search`` does, from Python."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cse import TextEncoder
from cse_search.index import index_of, is_index
from cse_search.ranking import check_queries, nearest
from cse_search.reading import read_passages

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
    batch_tokens: int | None = None,
) -> list[dict[str, Any]]:
    """Find the passages nearest to each query, as ``cse.Model.search`` does.

    Warns where the files of an index have changed since it was made.

    Args:
        plugins: The installed plugins.
        model: Encodes the queries and the texts.
        queries: What to look for.
        files: The folder of an index, or files and data sets as ``--data`` takes them.
        top: Passages for each query.
        bm25: Share of BM25 in the order of the texts, 0 to 1.
        batch_tokens: Tokens that the encoder is given at once.

    Raises:
        CseError: If a query or a file is wrong, or another model made the index.
    """
    check_queries(queries, top, bm25)
    encode = TextEncoder(model.loaded, batch_tokens)
    if len(files) == 1 and is_index(files[0]):
        index = index_of(files[0], model.name, plugins.registry, words=bm25 > 0)
        if note := index.note:
            warnings.warn(note, stacklevel=3)
        return index.nearest(encode, queries, top, bm25)
    passages = read_passages(files, plugins.registry)
    return nearest(encode, queries, passages, top, bm25)
