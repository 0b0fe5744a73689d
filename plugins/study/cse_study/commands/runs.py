"""``cse runs``: what was run, with its scores."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cse_cli.terminal.console import echo, plain_table, say_json, say_table, warn
from cse_core.errors import CseError, did_you_mean

if TYPE_CHECKING:
    from cse_study.pages.run_files import Run

_COLUMNS = ("run", "recipe", "model", "data", "steps", "seed", "state", "dev", "test")


def runs(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FOLDER", help="Folders with runs; by default runs."),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WHAT=VALUE",
            help="Only runs whose column or option holds this: recipe=simcse, train.lr=3e-05; may "
            "be repeated.",
        ),
    ] = None,
    sort: Annotated[
        str,
        typer.Option(metavar="COLUMN", help="time, or a column; numbers with the best first."),
    ] = "time",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """List runs: what was trained on what, how far it came, its dev and test scores.

    The scores are those that cse eval kept in the run's folder.
    """
    from cse_study.pages.run_files import find_runs

    found = find_runs(folders or [Path("runs")], lambda error: warn(str(error)))
    conditions = []
    for text in where or ():
        name, equals, value = text.partition("=")
        if not equals:
            hint = "write recipe=simcse, or train.lr=3e-05"
            raise CseError("is not WHAT=VALUE", where="--where", value=text, hint=hint)
        conditions.append((name.strip(), value.strip()))
    found = _sorted(_chosen(found, conditions), sort)
    if json:
        say_json({"runs": [run_json(run) for run in found]})
        return
    if not found:
        echo("no run is here")
        return
    table = plain_table("", _COLUMNS)
    for run in found:
        table.add_row(*[_shown(value) for value in _row(run).values()])
    say_table(table)


def run_json(run: Run) -> dict[str, Any]:
    """Return a run as data that JSON can hold."""
    scores = [
        {"set": score.set, "number": score.number, "value": score.value,
         "setting": score.setting, "time": score.time}
        for score in run.scores
    ]  # fmt: skip
    dev = None if run.dev is None else {"name": run.dev[0], "score": run.dev[1]}
    return {**run.about(), "dev": dev, "scores": scores}


def _row(run: Run) -> dict[str, Any]:
    about = run.about()
    dev, test = run.dev, run.test
    return {
        "run": about["run"],
        "recipe": about["recipe"],
        "model": _short(about["model"]),
        "data": ", ".join(map(_short, about["data"])),
        "steps": about["steps"],
        "seed": about["seed"],
        "state": about["state"],
        "dev": None if dev is None else (dev[1], dev[0]),
        "test": None if test is None else (test.value, test.name),
    }


def _short(name: str) -> str:
    """Return the last part of a file's path, but the whole name of a model of the hub."""
    return name.rpartition("/")[2] if name.startswith(("/", ".", "~")) else name


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return f"{value[0]:.2f} {value[1]}"
    return "-" if value is None else str(value)


def _chosen(runs: list[Run], conditions: list[tuple[str, str]]) -> list[Run]:
    """Return the runs whose columns hold texts, and whose options and numbers are values.

    Raises:
        CseError: If no run has such a column or option.
    """
    known = {path for run in runs for path in run.options}
    for name, _ in conditions:
        if runs and name not in (*_COLUMNS, *known):
            hint = did_you_mean(name, [*_COLUMNS, *known])
            raise CseError("no column or option of a run", where="--where", value=name, hint=hint)
    return [run for run in runs if all(_holds(run, *condition) for condition in conditions)]


def _holds(run: Run, name: str, text: str) -> bool:
    if name in ("steps", "seed", "state"):
        return _equal(_row(run)[name], text)
    if name in _COLUMNS:
        return text.casefold() in _shown(_row(run)[name]).casefold()
    value = run.options.get(name)
    values = value if isinstance(value, list) else [value]
    return name in run.options and any(_equal(each, text) for each in values)


def _equal(found: Any, text: str) -> bool:
    """Tell whether an option has a value; numbers are compared as numbers."""
    try:
        return float(found) == float(text)
    except (TypeError, ValueError):
        return str(found).casefold() == text.casefold()


def _sorted(runs: list[Run], column: str) -> list[Run]:
    """Return runs by a column, those without a value last.

    Raises:
        CseError: If no column has this name.
    """
    if column == "time":
        return runs
    if column not in _COLUMNS:
        hint = did_you_mean(column, ["time", *_COLUMNS])
        raise CseError("is not a column", where="--sort", value=column, hint=hint)
    values = {id(run): _row(run)[column] for run in runs}
    there = [run for run in runs if values[id(run)] is not None]
    numbers = column in ("steps", "dev", "test")
    there.sort(key=lambda run: values[id(run)], reverse=numbers)
    return there + [run for run in runs if values[id(run)] is None]
