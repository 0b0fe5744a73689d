"""``cse search``: the texts of a file that are nearest to a query."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cse_cli.completion import complete_data
from cse_cli.console import plain_table, say_json, say_table, tell, warn
from cse_cli.encode import unit
from cse_cli.installed import installed
from cse_cli.models import (
    BatchTokensOption,
    DeviceOption,
    MaxLengthOption,
    ModelArgument,
    PoolingOption,
    PrecisionOption,
    TextEncoder,
    check_model,
    encode_blocks,
    load_model,
)
from cse_cli.processes import shared
from cse_cli.texts import rows_of
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
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    pooling: PoolingOption = None,
    max_length: MaxLengthOption = None,
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
    texts = rows_of(data, plugins.datasets)
    loaded = load_model(
        model,
        plugins.registry,
        pooling=pooling,
        max_length=max_length,
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
    tell(f"{len(texts):,} texts of {data}")
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

    wanted = unit(np.concatenate([v for _, v in encode_blocks(encode, queries)]))
    distinct = list(dict.fromkeys(texts))
    cosines = np.concatenate(
        [wanted @ unit(v).T for _, v in encode_blocks(encode, distinct)], axis=1
    )
    first = {text: row for row, text in reversed(list(enumerate(texts, 1)))}
    found = []
    for query, row in zip(queries, cosines, strict=True):
        best = np.argsort(-row, kind="stable")[:top]
        results = [
            {
                "rank": rank,
                "cosine": round(float(row[place]), 6),
                "row": first[distinct[place]],
                "text": distinct[place],
            }
            for rank, place in enumerate(best, 1)
        ]
        found.append({"query": query, "results": results})
    return found
