"""``cse data show-pairs``: what a run's miners paired, round by round."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cse_cli.plugins.installed import installed
from cse_cli.terminal.console import echo, say_json
from cse_cli.training.stored_run import StoredRun
from cse_core.errors import CseError


def show_pairs(
    context: typer.Context,
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run with mining rounds.")],
    document: Annotated[
        str | None,
        typer.Option(
            metavar="ID", help="Show this document's clusters: sentences that pairs connect."
        ),
    ] = None,
    rows: Annotated[
        int, typer.Option(metavar="N", min=1, help="Pairs to show per round, without --document.")
    ] = 5,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the pairs of a run's rounds, or one document's clusters round by round."""
    stored = StoredRun(run, installed(context))
    if not stored.rounds:
        hint = "its miners work inside the step, or it has no miner"
        raise CseError("has no mined pairs", where="RUN", value=str(run), hint=hint)
    said = [_round(stored, number, document, rows) for number in stored.rounds]
    if json:
        say_json({"run": str(run), "document": document, "rounds": said})
        return
    for entry in said:
        echo(f"round {entry['round']}: {entry['pairs']:,} pairs")
        for text, positive in entry.get("examples", []):
            echo(f"  {text}\n    {positive}")
        for place, cluster in enumerate(entry.get("clusters", []), 1):
            echo(f"  cluster {place}")
            for text in cluster:
                echo(f"    {text}")
        if entry.get("unpaired"):
            echo("  in no pair")
            for text in entry["unpaired"]:
                echo(f"    {text}")


def _round(stored: StoredRun, number: int, document: str | None, rows: int) -> dict[str, Any]:
    """Describe the pairs of a round: one document's clusters, or its first pairs."""
    import numpy as np

    if document is not None:
        return {"round": number, **stored.clusters(number, document)}
    pairs, texts = stored.rounds[number].pairs, []
    for name in ("text", "positive"):  # a round without positives has those of the data's rows
        column = stored.corpus.column("text" if name in pairs else name)
        item = pairs.get(name, pairs["text"])[:rows]
        texts.append(column.take(item) if isinstance(item, np.ndarray) else list(item))
    return {
        "round": number,
        "pairs": len(pairs["text"]),
        "examples": list(zip(*texts, strict=True)),
    }
