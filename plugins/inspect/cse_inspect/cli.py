"""``cse inspect``: a batch as the losses see it."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cse import open_run
from cse_cli.api import (
    SHOWN,
    Choice,
    choice_flags,
    composition_of,
    echo,
    installed,
    progress,
    say_json,
)
from cse_core.errors import CseError

if TYPE_CHECKING:
    from cse import Composition, StoredRun

_option = partial(typer.Option, rich_help_panel="What to inspect", metavar="N")


@choice_flags()
def inspect(
    context: typer.Context,
    choice: Choice,
    run: Annotated[
        Path | None,
        typer.Argument(
            metavar="RUN", help="A run at its last checkpoint, instead of a choice of parts."
        ),
    ] = None,
    after: Annotated[
        int,
        _option(
            max=1_000, min=0, help="Training steps before the batch is shown; they fill queues."
        ),
    ] = 0,
    rows: Annotated[int, _option(min=1, max=100, help="Number of anchors to show.")] = 2,
    columns: Annotated[
        int,
        _option(
            min=1,
            max=1_000,
            help="Negatives to show per anchor, most similar first, and as many masked ones.",
        ),
    ] = 5,
    json: Annotated[
        bool,
        typer.Option("--json", help="Print one JSON object at the end.", rich_help_panel=SHOWN),
    ] = False,
) -> None:
    """Show a batch as the losses see it: texts, views, positives, negatives, masks and weights.

    It takes the options of cse train, or a run, makes the same steps and writes nothing.
    """
    if run is not None and choice != Choice(dev=["none"]):
        hint = "leave out these options, or the run"
        raise CseError("its run.toml says what it is made of", where="RUN", hint=hint)
    plugins = installed(context)
    made_of: Composition | StoredRun
    made_of = composition_of(choice, plugins) if run is None else open_run(run, plugins=plugins)
    with progress(plugins, json=json) as reporter:
        from cse import Session
        from cse_inspect.step import WatchedStep

        if int(os.environ.get("WORLD_SIZE") or 1) > 1:
            hint = "start it without torchrun"
            raise CseError("shows a single process", where="inspect", hint=hint)
        with Session(made_of, plugins=plugins, reporter=reporter) as session:
            value = WatchedStep(session, after).to_json(rows=rows, columns=columns)
    if json:
        say_json(value)
    else:
        _show(value)


def _show(value: dict[str, Any]) -> None:
    """Print what was seen on stdout."""
    echo(
        f"recipe {value['recipe']}, model {value['model']}, round {value['round']}, "
        f"step {value['step']} of {value['steps']}: {value['rows']} rows"
    )
    echo("views:")
    for view in value["views"]:
        column = f", column {view['column']}" if view["column"] else ""
        echo(f"  {view['name']}: {view['count']} rows by {view['branch']}{column}")
        for row in view["rows"]:
            slot = f" slot {row['slot']}" if row["slot"] else ""
            echo(f"    {row['row']}{slot}: {row['read']}")
    for name, loss in value["losses"].items():
        came = loss["value"] if "why" not in loss else f"not computed, because {loss['why']}"
        echo(f"loss.{name}: {came}, weight {loss['weight']:g}, level {loss['level']}")
        for place, direction in enumerate(loss["directions"]):
            _show_direction(direction, f"{loss['target']} to anchor" if place else "")


def _show_direction(direction: dict[str, Any], turned: str) -> None:
    if turned:
        echo(f"  {turned}:")
    for block in direction["blocks"]:
        age = f", pushed {block['age']:g} steps ago in the mean" if "age" in block else ""
        seen = f"{block['seen_by_an_anchor']:g} of {block['columns']}"
        echo(f"  negatives from {block['source']}: an anchor sees {seen}{age}")
    for anchor in direction["shown"]:
        slot = f" slot {anchor['slot']}" if anchor["slot"] else ""
        echo(f"  anchor {anchor['batch_row']}{slot}, row {anchor['row']}: {anchor['text']}")
        for positive in anchor["positives"]:
            text = f": {positive['text']}" if positive.get("text") else ""
            echo(f"    positive: {_numbers(positive)}{text}")
        for kind in ("negatives", "masked"):
            word = "negative" if kind == "negatives" else "masked"
            for item in anchor[kind]:
                why = f" ({item['why']})" if "why" in item else ""
                text = "no text" if item["text"] is None else item["text"]
                echo(f"    {word}{why}: {item['source']}, {_numbers(item)}: {text}")
            whole = anchor["negatives_seen" if kind == "negatives" else "masked_in_all"]
            if whole > len(anchor[kind]):
                echo(f"    {word}: {whole - len(anchor[kind])} more")


def _numbers(value: dict[str, Any]) -> str:
    names = ("row", "cosine", "dot", "age", "weight", "log_weight")
    return ", ".join(f"{name} {value[name]}" for name in names if name in value)
