"""``cse search``: the texts of a file that are nearest to a query."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cse_cli.models.encoding import TextEncoder
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
from cse_core.errors import CseError


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
    """Find the texts nearest to a query by cosine."""
    if top < 1:
        raise CseError("must be at least 1", where="--top", value=top)
    blank = [query for query in queries if not query.strip()]
    if blank:
        raise CseError("is blank", where="QUERY", value=blank[0], hint="write what to look for")
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
    found = _nearest(encode, queries, texts, top)
    if encode.note:
        warn(encode.note)
    if json:
        say_json({"model": model, "data": data, "texts": len(texts), "queries": found})
        return
    echo_err(f"{len(texts):,} texts of {data}")
    for each in found:
        table = plain_table(each["query"], ("cosine", "row", "text"))
        for hit in each["results"]:
            table.add_row(f"{hit['cosine']:.4f}", str(hit["row"]), hit["text"])
        say_table(table)


def _nearest(
    encode: TextEncoder, queries: list[str], texts: list[str], top: int
) -> list[dict[str, Any]]:
    """Return for each query its nearest texts, equal texts once; rows count from 1."""
    import numpy as np

    from cse_cli.models.geometry import unit

    asked = np.concatenate([vectors for _, vectors in encode.blocks(queries)])
    wanted = unit(asked).astype(np.float32)
    distinct = list(dict.fromkeys(texts))
    blocks = (unit(vectors).astype(np.float32) for _, vectors in encode.blocks(distinct))
    cosines = np.concatenate([wanted @ block.T for block in blocks], axis=1)
    best = np.argsort(-cosines, axis=1, kind="stable")[:, :top].tolist()
    first = {text: row for row, text in reversed(list(enumerate(texts, 1)))}
    found = []
    for query, places, row in zip(queries, best, cosines, strict=True):
        results = [
            {
                "rank": rank,
                "cosine": round(float(row[place]), 6),
                "row": first[distinct[place]],
                "text": distinct[place],
            }
            for rank, place in enumerate(places, 1)
        ]
        found.append({"query": query, "results": results})
    return found
