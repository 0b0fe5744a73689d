"""``cse search``: the texts of a file or an index that are nearest to a query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cse import TextEncoder
from cse_cli.api import (
    ColumnsOption,
    Installed,
    Loading,
    ModelArgument,
    Models,
    complete_data,
    echo_err,
    installed,
    model_flags,
    named_columns,
    plain_table,
    rows_of,
    say_json,
    say_table,
    shared,
    warn,
)
from cse_core.errors import CseError, truncate
from cse_search.index import index_folder, index_of
from cse_search.ranking import check_queries, nearest

if TYPE_CHECKING:
    from cse_search.index import Index


@shared
@model_flags
def search(
    context: typer.Context,
    model: ModelArgument,
    queries: Annotated[list[str], typer.Argument(metavar="QUERY", help="What to look for.")],
    data: Annotated[
        str | None,
        typer.Option(
            "--data",
            "-d",
            metavar="FILE|NAME",
            help="The texts: a file as for training, or an installed data set (default: those of "
            "the index).",
            autocompletion=complete_data,
        ),
    ] = None,
    index: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="An index that `cse index` made (default: index in the run's folder).",
        ),
    ] = None,
    top: Annotated[int, typer.Option(metavar="N", help="Texts to show for each query.")] = 5,
    bm25: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            help="Share of BM25 in the order, 0 to 1: a mean of scores by words and by vectors; "
            "0.3 helps many encoders on texts that they do not know.",
        ),
    ] = 0,
    sets: ColumnsOption = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    *,
    loading: Loading,
) -> None:
    """Find the texts nearest to a query.

    By cosine or the similarity that the model declares; --bm25 ranks by words too.
    """
    check_queries(queries, top, bm25)
    plugins = installed(context)
    loading.check(model, plugins.registry)
    texts: list[str] = []
    saved = None
    if data is None:
        given = {name: getattr(loading, name) for name in ("pooling", "max_length", "prompt")}
        saved = _index(model, index, plugins, {k: v for k, v in given.items() if v is not None})
        loading = replace(loading, **{name: saved.about["settings"][name] for name in given})
    elif index is not None:
        raise CseError("the texts are those of --data", where="--index", value=str(index),
                       hint="leave out one of them")  # fmt: skip
    else:
        texts = rows_of(data, plugins.registry, named_columns(sets))
    loaded = loading.load(model, plugins.registry)
    encode = TextEncoder(loaded, loading.batch_tokens)
    if saved is None:
        results = nearest(encode, queries, texts, top, bm25)
    else:
        results = saved.nearest(encode, queries, top, bm25)
    if encode.note:
        warn(encode.note)
    if json:
        where = {"data": data} if saved is None else {"index": str(saved.path)}
        count = len(texts) if saved is None else len(saved.vectors)
        say_json({"model": model, **where, "texts": count, "queries": results})
        return
    many, source = (len(texts), data) if saved is None else (len(saved.vectors), saved.path)
    echo_err(f"{many:,} texts of {source}")
    for query in results:
        heads = ("row",) if saved is None else ("file", "row")
        heads = ("bm25", *heads) if bm25 else heads
        table = plain_table(query["query"], (query["similarity"], *heads, "text"))
        for hit in query["results"]:
            shown = (str(hit[head]) for head in heads)
            table.add_row(f"{hit['score']:.4f}", *shown, truncate(hit["text"], 600))
        say_table(table)


def _index(model: str, named: Path | None, plugins: Installed, given: Mapping[str, Any]) -> Index:
    """Return the index of a model; refuse one that another model or other settings made."""
    folder = index_folder(model, named)
    if named is None and (folder is None or not folder.is_dir()):
        Models(plugins.registry).weights(model)  # a model that is not there has none
        hint = "name --data FILE, or --index DIR; cse index MODEL FILE... --out DIR makes one"
        raise CseError("no texts are named, and the model has no index", where="--data", hint=hint)
    assert folder is not None
    return index_of(folder, model, plugins.registry, given)
