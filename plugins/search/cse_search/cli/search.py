"""``cse search``: the texts of a file or an index that are nearest to a query."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

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
    echo,
    echo_err,
    installed,
    model_flags,
    named_columns,
    plain_table,
    say_json,
    say_json_line,
    say_table,
    shared,
    stdin_lines,
    warn,
)
from cse_core.errors import CseError, truncate
from cse_search.index import index_folder
from cse_search.opened import Index, Texts, queries_encoder
from cse_search.ranking import check_queries
from cse_search.reading import read_passages
from cse_search.reranking import DEPTH, check_level, check_rerank


@shared
@model_flags
def search(
    context: typer.Context,
    model: ModelArgument,
    queries: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="QUERY",
            help="What to look for. Without any, lines are read: at a prompt in a terminal, else "
            "from stdin, and each is answered by a line of JSON.",
            show_default=False,
        ),
    ] = None,
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
    check_queries(queries or ["a"], top, bm25)
    check_rerank(rerank, rerank_top, top, level)
    plugins = installed(context)
    loading.check(model, plugins.registry)
    if data is not None and index is not None:
        raise CseError("the texts are those of --data", where="--index", value=str(index),
                       hint="leave out one of them")  # fmt: skip
    searched: Index | Texts
    if data is None:
        if sets:
            hint = "cse index --set reads the columns of an index"
            raise CseError("is for --data", where="--set", value=sets[0], hint=hint)
        folder = _index(model, index, plugins)
        searched = Index(
            folder, model, queries_model=queries_model, loading=loading, plugins=plugins
        )
    else:
        asking = None if queries_model == "none" else queries_model
        check_level(level, asking)
        passages = read_passages([data], plugins.registry, named_columns(sets))
        of_queries = queries_encoder(asking, loading, plugins) if asking else None
        encode = TextEncoder(loading.load(model, plugins.registry), loading.batch_tokens)
        searched = Texts(passages, data, plugins, encode, of_queries, loading.device)

    def found(asked: Sequence[str]) -> list[dict[str, Any]]:
        again: dict[str, Any] = {"rerank": rerank, "rerank_top": rerank_top}
        return searched.search(asked, top=top, bm25=bm25, level=level, **again)

    many, by = f"{len(searched):,} texts of {searched.path}", searched.queries_model
    if by is not None:
        many += f", encoded by {model}; queries by {by}"
        if data is None:
            both = "both" if queries_model is None else model
            many += f" ({both} as when the index was made)"
    shown = Shown(bm25 > 0, level is not None, rerank is not None)
    if not queries:
        if searched.note:
            warn(searched.note)
        _ask_again(found, shown, many, json=json or not sys.stdin.isatty())
        return
    results = found(queries)
    for note in filter(None, (searched.note, searched.note_of_texts)):
        warn(note)
    if json:
        where = {"data": data} if data is not None else {"index": str(searched.path)}
        by_model = {"model": model, "queries_model": by or model}
        say_json({**by_model, **where, "texts": len(searched), "queries": results})
        return
    echo_err(many)
    for query in results:
        shown.table(query)


def _ask_again(
    found: Callable[[Sequence[str]], list[dict[str, Any]]], shown: Shown, many: str, *, json: bool
) -> None:
    """Answer lines until they end: by tables at a prompt, or each by a line of JSON."""
    if json:
        for line in stdin_lines():
            if line.strip():
                (result,) = found([line])
                say_json_line(result)
        return
    echo_err(f"{many}\nType what to look for; Ctrl-D ends.")
    while True:
        try:
            line = input("search> ")
        except EOFError:
            echo("")
            return
        if line.strip():
            shown.table(found([line])[0])


@dataclass(frozen=True)
class Shown:
    """Which numbers the table of a query has beside the similarity."""

    bm25: bool
    late: bool
    rerank: bool

    def table(self, query: Mapping[str, Any]) -> None:
        """Print the passages of a query."""
        kind = query["similarity"]
        numbers = [*["rerank"] * self.rerank, *["maxsim"] * self.late]
        numbers += ["score", kind, "bm25"] if self.bm25 else [kind]
        table = plain_table(query["query"], (*numbers, "file", "row", "text"))
        for hit in query["results"]:
            above = " > ".join(filter(None, (hit["title"], hit["headings"])))
            text = truncate(hit["text"], 600)
            cells = (f"{hit[name]:.4f}" for name in numbers)
            table.add_row(*cells, hit["file"], str(hit["row"]), f"{above}\n{text}".strip())
        say_table(table)


def _index(model: str, named: Path | None, plugins: Installed) -> Path:
    """Return the folder of a model's index."""
    folder = index_folder(model, named)
    if folder is None or (named is None and not folder.is_dir()):
        Models(plugins.registry).weights(model)  # a model that is not there has none
        hint = "name texts with --data FILE, or build an index first: cse index MODEL FILE..."
        raise CseError("names no texts, and the model has no index", where="--data", hint=hint)
    return folder
