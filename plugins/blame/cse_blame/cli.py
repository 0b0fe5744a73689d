"""``cse blame``: the training rows that moved the similarity of two texts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cse_cli.api import SHOWN, echo, installed, progress, say_json, visible

if TYPE_CHECKING:
    from cse_blame.blaming import Blame, Row
    from cse_blame.proof import Claim, Proof

MAX_CHARACTERS = 160
"""Of a value that is shown."""
MAX_STEPS = 6
"""Steps of a row that are shown."""


def blame(
    context: typer.Context,
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a finished run.")],
    query: Annotated[str, typer.Argument(metavar="QUERY", help="A text.")],
    document: Annotated[str, typer.Argument(metavar="DOCUMENT", help="Another text.")],
    top: Annotated[
        int,
        typer.Option(
            metavar="K", min=1, help="Rows to list that raised the similarity, and that lowered it."
        ),
    ] = 10,
    prove: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            help="Train again without the first N rows of each list, and without random ones.",
        ),
    ] = 0,
    controls: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Trainings without random rows beside a proof (default: 9)."
        ),
    ] = None,
    update: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="What a gradient does to the weights: adamw, as the run did, or sgd (TracIn).",
        ),
    ] = "adamw",
    json: Annotated[
        bool,
        typer.Option("--json", help="Print one JSON object at the end.", rich_help_panel=SHOWN),
    ] = False,
) -> None:
    """List the training rows that moved the similarity of two texts most.

    It replays the run's batches by the weights of the checkpoints that the run kept, and writes
    nothing.
    """
    plugins = installed(context)
    with progress(plugins, json=json) as reporter:
        from cse_blame.blaming import blame as blamed

        value = blamed(
            plugins,
            run,
            query,
            document,
            top=top,
            prove=prove,
            controls=controls,
            update=update,
            reporter=reporter,
        )
    if json:
        say_json(value.to_json())
    else:
        _show(value)


def _show(value: Blame) -> None:
    """Print what was found on stdout."""
    start = "" if value.start is None else f"{value.start:.4f} at the start, "
    echo(f"{value.kind}: {start}{value.end:.4f} in the run")
    for at in value.checkpoints:
        first, last = at.steps
        where = "the start" if not (at.round or at.step) else f"step {at.step}"
        where = f"round {at.round}, {where}" if at.round else where
        steps = f"step {last:,}" if first == last else f"steps {first:,}-{last:,}"
        echo(f"  {steps} by the weights of {where}, where it is {at.similarity:.4f}")
    rows = f"{value.rows:,} rows in {value.steps:,} batches"
    echo(f"{rows}, which moved it by {value.moved:+.4f} to first order")
    if abs(value.rest) > 0.02:
        echo(
            f"{value.rest:+.1%} of what the batches moved is of none of their rows: "
            "a loss reads more than their vectors"
        )
    for rows, word in ((value.raised, "raised"), (value.lowered, "lowered")):
        most = f"{word} it most, as shares of what all rows moved it up or down:"
        echo(most if rows else f"no row {word} it")
        for row in rows:
            _show_row(row)
    if value.proof is not None:
        _show_proof(value, value.proof)


def _show_row(row: Row) -> None:
    steps = ", ".join(f"{step:,}" for step in row.steps[:MAX_STEPS])
    more = f" and {len(row.steps) - MAX_STEPS} more" if len(row.steps) > MAX_STEPS else ""
    of_round = f" of round {row.round}" if row.round else ""
    many = "s" if len(row.steps) > 1 else ""
    echo(f"  {row.share:+.2%}  row {row.row}{of_round}, step{many} {steps}{more}")
    for name, column in row.columns.items():
        if column not in ("", None, []):
            echo(f"    {name}: {_cut(column)}")


def _cut(value: Any) -> str:
    text = " | ".join(map(str, value)) if isinstance(value, list) else str(value)
    text = visible(" ".join(text.split()))
    return text if len(text) <= MAX_CHARACTERS else f"{text[: MAX_CHARACTERS - 1]}…"


def _show_proof(value: Blame, proof: Proof) -> None:
    echo(f"trained again, {value.kind} of the pair:")
    if value.start is not None:
        echo(f"  at the start: {value.start:.4f}")
    echo(f"  in the run: {value.end:.4f}")
    same = "as in the run" if proof.repeats else "not as in the run: another machine or version"
    echo(f"  with all rows: {proof.again:.4f}, {same}")
    chance = f"confirmed (by chance 1 time in {2 * (len(proof.controls) + 1)})"
    _show_claim(proof.raised, "raised", chance)
    _show_claim(proof.lowered, "lowered", chance)
    for number, change in zip(proof.controls, proof.changes, strict=True):
        echo(f"  without as many random rows: {number:.4f} ({change:+.4f})")


def _show_claim(claim: Claim | None, word: str, confirmed: str) -> None:
    if claim is None:
        return
    said = confirmed if claim.confirmed else "NOT confirmed: " + _why_not(claim, word)
    count = len(claim.rows)
    rows = f"the row that {word} it most" if count == 1 else f"the {count} rows that {word} it most"
    echo(f"  without {rows}: {claim.without:.4f} ({claim.change:+.4f}), {said}")


def _why_not(claim: Claim, word: str) -> str:
    wanted = -1 if word == "raised" else 1
    if claim.change * wanted > 0:
        return "random rows change it as much"
    return "it did not fall" if wanted < 0 else "it did not rise"
