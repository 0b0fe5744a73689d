"""``cse choose``: compare encoders on one's own texts."""

from __future__ import annotations

from typing import Annotated

import typer

from cse_cli.api import (
    complete_data,
    complete_model,
    echo,
    echo_err,
    installed,
    plain_table,
    say_json,
    say_table,
)


def choose(
    context: typer.Context,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="Your texts: a folder of md, html and txt documents, or a table.",
            autocompletion=complete_data,
            show_default=False,
        ),
    ],
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL", help="Encoders to compare.", autocompletion=complete_model,
            show_default=False,
        ),
    ],
    data: Annotated[
        list[str] | None,
        typer.Option("--data", "-d", metavar="FILE", help="More texts; may be repeated."),
    ] = None,
    max_length: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Longest text in tokens (default: the model's)."),
    ] = None,
    device: Annotated[str, typer.Option(metavar="NAME", help="cuda, mps, cpu or auto.")] = "auto",
    precision: Annotated[
        str, typer.Option(metavar="NAME", help="fp32, bf16, int8 or auto.")
    ] = "auto",
    batch_tokens: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Tokens encoded at once, about.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:  # fmt: skip
    """Compare encoders on your texts: titles, headings and sentences look for their texts."""
    from cse_tune import choosing

    result = choosing.choose(
        installed(context), [file, *(data or ())], models, max_length=max_length, device=device,
        precision=precision, batch_tokens=batch_tokens,
        say=(lambda _: None) if json else echo_err,
    )  # fmt: skip
    if json:
        say_json(result)
        return
    for line in result["messages"]:
        echo_err(line)
    kinds = [*result["questions"]]
    counts = [f"{kind} ({result['questions'][kind]})" for kind in kinds]
    table = plain_table("", ("model", *counts, "from the first", "texts a second"))
    first = result["models"][0]["model"]
    below = {pair["models"][1]: pair for pair in result["pairs"] if pair["models"][0] == first}
    for row in result["models"]:
        pair = below.get(row["model"])
        apart = ""
        if pair:  # of the first from this one
            apart = f"{-pair['value']:+.2f} [{-pair['high']:+.2f}, {-pair['low']:+.2f}]"
        scores = [f"{row['scores'][kind]:.2f}" for kind in kinds]
        table.add_row(row["model"], *scores, apart, f"{row['texts_per_second']:.0f}")
    table.add_row(choosing.WORDS, *(f"{result['words'][kind]:.2f}" for kind in kinds), "", "")
    say_table(table)
    echo(result["verdict"])
