"""``cse search``: the texts of a file that are nearest to a query."""

from __future__ import annotations

from typing import Annotated

import typer

from cse_cli.models.encoding import TextEncoder, check_queries, nearest
from cse_cli.models.loading import (
    BatchTokensOption,
    DeviceOption,
    MaxLengthOption,
    ModelArgument,
    PoolingOption,
    PrecisionOption,
    PromptOption,
    check_model,
    load_model,
)
from cse_cli.models.processes import shared
from cse_cli.options.completion import complete_data
from cse_cli.plugins.installed import installed
from cse_cli.terminal.console import echo_err, plain_table, say_json, say_table, warn
from cse_cli.texts.given import ColumnsOption, named_columns, rows_of


@shared
def search(
    context: typer.Context,
    model: ModelArgument,
    queries: Annotated[list[str], typer.Argument(metavar="QUERY...", help="What to look for.")],
    data: Annotated[
        str,
        typer.Option(
            "--data",
            "-d",
            metavar="FILE|NAME",
            help="The texts: a file as for training, or an installed data set.",
            autocompletion=complete_data,
        ),
    ],
    top: Annotated[int, typer.Option(metavar="N", help="Texts to show for each query.")] = 5,
    sets: ColumnsOption = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    pooling: PoolingOption = None,
    max_length: MaxLengthOption = None,
    prompt: PromptOption = None,
    device: DeviceOption = "auto",
    precision: PrecisionOption = "fp32",
    batch_tokens: BatchTokensOption = None,
) -> None:
    """Find the texts nearest to a query.

    By cosine, or as the model says.
    """
    check_queries(queries, top)
    plugins = installed(context)
    check_model(model, plugins.registry, pooling=pooling, max_length=max_length)
    texts = rows_of(data, plugins.registry, named_columns(sets))
    loaded = load_model(
        model,
        plugins.registry,
        pooling=pooling,
        max_length=max_length,
        prompt=prompt,
        device=device,
        precision=precision,
    )
    encode = TextEncoder(loaded, batch_tokens)
    found = nearest(encode, queries, texts, top)
    if encode.note:
        warn(encode.note)
    if json:
        say_json({"model": model, "data": data, "texts": len(texts), "queries": found})
        return
    echo_err(f"{len(texts):,} texts of {data}")
    for each in found:
        table = plain_table(each["query"], (each["similarity"], "row", "text"))
        for hit in each["results"]:
            table.add_row(f"{hit['score']:.4f}", str(hit["row"]), hit["text"])
        say_table(table)
