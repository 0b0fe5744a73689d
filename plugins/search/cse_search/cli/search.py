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
    complete_model,
    echo_err,
    installed,
    model_flags,
    named_columns,
    plain_table,
    say_json,
    say_table,
    shared,
    warn,
)
from cse_core.errors import CseError, truncate
from cse_search.index import OF_MODEL, index_folder, index_of, queries_model_of
from cse_search.late import Late
from cse_search.ranking import check_queries, nearest
from cse_search.reading import Passage, read_passages
from cse_search.reranking import DEPTH, Reranker, check_level, check_rerank

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
    queries_model: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Another model for queries, in the space of the one that encodes texts; none: "
            "that one (default: as the index was made).",
            autocompletion=complete_model,
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
    level: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Order the first texts by the model's vectors of this level, such as token (late "
            "interaction): those of the index, or new ones.",
        ),
    ] = None,
    rerank: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="A cross-encoder that reads the query with each of the first texts, and orders "
            "these again.",
        ),
    ] = None,
    rerank_top: Annotated[
        int | None,
        typer.Option(
            metavar="N", help=f"Texts of a query that --rerank or --level orders ({DEPTH})."
        ),
    ] = None,
    sets: ColumnsOption = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    *,
    loading: Loading,
) -> None:
    """Find the texts nearest to a query.

    By cosine or the similarity that the model declares; --bm25 ranks by words too.
    """
    check_queries(queries, top, bm25)
    depth = check_rerank(rerank, rerank_top, top, level)
    count = top if rerank is None else depth
    plugins = installed(context)
    loading.check(model, plugins.registry)
    passages: list[Passage] = []
    saved = None
    if data is None:
        given = {name: getattr(loading, name) for name in OF_MODEL}
        asked = {name: value for name, value in given.items() if value is not None}
        saved = _index(model, index, plugins, asked, bm25 > 0)
        loading = replace(loading, **{name: saved.about["settings"][name] for name in given})
    elif index is not None:
        raise CseError("the texts are those of --data", where="--index", value=str(index),
                       hint="leave out one of them")  # fmt: skip
    else:
        passages = read_passages([data], plugins.registry, named_columns(sets))
    again = None if rerank is None else Reranker(rerank, plugins.registry, loading.device)
    asked_of = None if queries_model == "none" else queries_model
    if saved is not None and queries_model is None:
        asked_of = queries_model_of(saved, plugins.registry)
    check_level(level, asked_of)
    of_queries = queries_encoder(asked_of, loading, plugins) if asked_of else None
    if saved is not None and of_queries is not None:
        encode = of_queries
    else:
        encode = TextEncoder(loading.load(model, plugins.registry), loading.batch_tokens)
    late = None if level is None else Late(encode, level, depth)
    if saved is None:
        results = nearest(encode, queries, passages, count, bm25, of_queries=of_queries, late=late)
    else:
        another = of_queries is not None
        results = saved.nearest(encode, queries, count, bm25, late, by_another=another)
    if again is not None:
        results = again.reranked(results, top)
    notes = ("" if saved is None else saved.note, encode.note)
    for note in filter(None, notes):
        warn(note)
    many, source = (len(passages), data) if saved is None else (len(saved), saved.path)
    if json:
        where = {"data": data} if saved is None else {"index": str(source)}
        by_model = {"model": model, "queries_model": asked_of or model}
        say_json({**by_model, **where, "texts": many, "queries": results})
        return
    by = "" if asked_of is None else f", encoded by {model}; queries by {asked_of}"
    if by and saved is not None:
        both = "both" if queries_model is None else model
        by += f" ({both} as when the index was made)"
    echo_err(f"{many:,} texts of {source}{by}")
    for query in results:
        numbers = ("score", query["similarity"], "bm25") if bm25 else (query["similarity"],)
        numbers = numbers if late is None else ("maxsim", *numbers)
        numbers = numbers if again is None else ("rerank", *numbers)
        table = plain_table(query["query"], (*numbers, "file", "row", "text"))
        for hit in query["results"]:
            above = " > ".join(filter(None, (hit["title"], hit["headings"])))
            text = truncate(hit["text"], 600)
            shown = (f"{hit[name]:.4f}" for name in numbers)
            table.add_row(*shown, hit["file"], str(hit["row"]), f"{above}\n{text}".strip())
        say_table(table)


def queries_encoder(name: str, loading: Loading, plugins: Installed) -> TextEncoder:
    """Load a model of queries: on the same device, cut to the same dimension."""
    loading = replace(loading, pooling=None, max_length=None, prompt=None)
    try:
        return TextEncoder(loading.load(name, plugins.registry), loading.batch_tokens)
    except CseError as error:
        where = "--queries-model" if error.where == "MODEL" else error.where
        raise CseError(error.what, where=where, value=error.value, hint=error.hint) from None


def _index(
    model: str, named: Path | None, plugins: Installed, given: Mapping[str, Any], words: bool
) -> Index:
    """Return the index of a model; refuse one that another model or other settings made."""
    folder = index_folder(model, named)
    if named is None and (folder is None or not folder.is_dir()):
        Models(plugins.registry).weights(model)  # a model that is not there has none
        hint = "name texts with --data FILE, or build an index first: cse index MODEL FILE..."
        raise CseError("names no texts, and the model has no index", where="--data", hint=hint)
    assert folder is not None
    return index_of(folder, model, plugins.registry, given, words=words)
