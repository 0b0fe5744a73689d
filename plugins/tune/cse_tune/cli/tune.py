"""``cse tune``: race compositions on one's own texts."""

from __future__ import annotations

import sys
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from cse_cli.api import (
    check_out_folder,
    complete_data,
    complete_model,
    echo,
    echo_err,
    installed,
    plain_table,
    say_json,
    say_table,
)


def tune(
    context: typer.Context,
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help="Your texts, with titles: folders of md, html and txt documents, or tables.",
            autocompletion=complete_data,
            show_default=False,
        ),
    ],
    model: Annotated[
        str,
        typer.Option(
            "--model", "-m", metavar="NAME", help="The encoder to start from.",
            autocompletion=complete_model, show_default=False,
        ),
    ],
    minutes: Annotated[
        float, typer.Option(min=0.1, metavar="N", help="What the whole takes, about.")
    ] = 30.0,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="DIR", help="Folder; a race that is there goes on."),
    ] = Path("tuned"),
    space: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Compositions that race: settings and axes of a study file (default: nine methods "
            "by three learning rates).",
        ),
    ] = None,
    seeds: Annotated[
        int, typer.Option(min=2, metavar="N", help="Seeds that compare methods at the end.")
    ] = 3,
    steps: Annotated[
        int | None,
        typer.Option(
            min=9, metavar="N", help="Steps of the winner at most (default: 300, or five epochs)."
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Runs at a time (default: the cores, at most 4)."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check every composition, and stop.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:  # fmt: skip
    """Race mixes of methods on your texts, and judge the winner by documents that chose nothing."""
    from cse import questions
    from cse_tune.tuning import Race, workers_of

    plugins = installed(context)
    say = (lambda _: None) if json else echo_err
    race = Race(plugins, files, model, minutes, out, space, seeds, steps, workers_of(workers), say)
    if dry_run:
        with TemporaryDirectory(prefix="cse-tune-") as folder:
            race.out = Path(folder)
            split = race.prepare()
            planned = race.plan()
        if json:
            say_json({"documents": len(split.trained), "race": len(split.race.asked),
                      "judge": len(split.judge.asked), **planned})  # fmt: skip
            return
        for line in split.messages:
            echo(line)
        echo(f"rows that train: {len(split.trained):,}")
        echo(f"titles that race: {len(split.race.asked)} among {len(split.race.texts):,} texts")
        count = len(split.judge.asked)
        among = f"titles that judge: {count} among {len(split.judge.texts):,} texts"
        least = questions.least_gain(count)
        echo(f"{among}; the least gain that they show is about {least:.1f}")
        for point in planned["points"]:
            faults = planned["left_out"].get(point["number"])
            echo(f"  {point['number']}. {point['label']}"
                 + (f": left out: {faults[0]}" if faults else ""))  # fmt: skip
        return
    check_out_folder(out)
    try:
        result = race.run()
    except KeyboardInterrupt:
        command = " ".join(["cse", *map(quote, sys.argv[1:])])
        echo_err(f"stopped; to go on, run: {command}")
        raise typer.Exit(130) from None
    if json:
        say_json(result)
        return
    _show(result)


def _show(result: dict[str, Any]) -> None:
    table = plain_table("", ("composition", "steps", "nDCG@10", "left", "from the best"))
    began = [row for row in result["race"] if row["scores"]]
    said = {None: "won", "worse": "worse", "room": "no room", "failed": "failed"}
    for row in sorted(began, key=lambda row: (row["left"] is not None, -len(row["scores"]),
                                              -row["scores"][-1][1])):  # fmt: skip
        steps, score = row["scores"][-1]
        apart = "{value:+.2f} [{low:+.2f}, {high:+.2f}]".format(**row["difference"]) \
            if "difference" in row else ""  # fmt: skip
        table.add_row(row["label"], f"{steps}", f"{score:.2f}", said[row["left"]], apart)
    say_table(table)
    why: dict[str, list[str]] = {}
    for row in result["race"]:
        if row["left"] == "failed":
            why.setdefault(row["line"], []).append(row["label"])
    for label, faults in result["refused"].items():
        why.setdefault(faults[0], []).append(label)
    for line, labels in why.items():
        echo(f"left out: {'; '.join(labels)}: {line}")
    if idle := sum(row["left"] == "not begun" for row in result["race"]):
        echo(f"{idle} compositions did not begin; more --minutes take them in")
    echo(result["verdict"])
    for line in result["ends"]:
        echo(f"note: {line}")
    echo(f"picture: {result['picture']}")
    echo(f"recipe: {result['recipe']}")
    if result["model"]:
        echo(f"model: {result['model']}")
