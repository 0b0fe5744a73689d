"""``cse runs``, ``compare`` and ``plot``: runs listed, side by side, and on a page of pictures."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cse_cli.api import echo, plain_table, say_json, say_table, warn
from cse_core.errors import CseError, did_you_mean

if TYPE_CHECKING:
    from cse_study.pages.runs import Run

_COLUMNS = ("run", "recipe", "model", "data", "steps", "seed", "state", "dev", "test")


def runs(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FOLDER", help="Folders with runs; by default runs."),
    ] = None,
    sort: Annotated[
        str, typer.Option(metavar="COLUMN", help="time, or a column; numbers with the best first.")
    ] = "time",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """List runs: what was trained on what, how far it came, its dev and test scores.

    The scores are those that cse eval kept in the run's folder.
    """
    from cse_study.pages.runs import find_runs

    loaded = find_runs(folders or [Path("runs")], lambda error: warn(str(error)))
    rows = [(run, _row(run)) for run in loaded]
    if sort != "time":
        if sort not in _COLUMNS:
            hint = did_you_mean(sort, ["time", *_COLUMNS])
            raise CseError("is not a column", where="--sort", value=sort, hint=hint)
        known = [pair for pair in rows if pair[1][sort] is not None]
        without = [pair for pair in rows if pair[1][sort] is None]
        numbers = sort in ("steps", "dev", "test")
        rows = sorted(known, key=lambda pair: pair[1][sort], reverse=numbers) + without
    if json:
        about = [{**run.about(), "scores": list(map(asdict, run.scores))} for run, _ in rows]
        say_json({"runs": about})
        return
    if not rows:
        echo("no run is here")
        return
    table = plain_table("", _COLUMNS)
    for _, row in rows:
        table.add_row(*map(_cell, row.values()))
    say_table(table)


def _row(run: Run) -> dict[str, Any]:
    """Return the columns of a run; scores as number and name."""
    about, dev, test = run.about(), run.dev, run.test
    return {
        **{name: about[name] for name in ("run", "recipe")},
        "model": _short(about["model"]),
        "data": ", ".join(map(_short, about["data"])),
        **{name: about[name] for name in ("steps", "seed", "state")},
        "dev": None if dev is None else (dev[1], dev[0]),
        "test": None if test is None else (test.value, test.name),
    }


def _short(name: str) -> str:
    """Return the last part of a file's path, but the whole name of a model of the hub."""
    return name.rpartition("/")[2] if name.startswith(("/", ".", "~")) else name


def _cell(value: Any) -> str:
    if isinstance(value, tuple):
        return f"{value[0]:.2f} {value[1]}"
    if isinstance(value, list):
        return ", ".join(map(_cell, value))
    if isinstance(value, bool):
        return str(value).lower()
    return "-" if value is None else str(value)


def compare(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN RUN", help="Folders of runs, two or more.")
    ],
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Put runs side by side: the settings that differ, and the scores.

    Scores that were measured in other settings, or on other texts, stand in rows of their own.
    One seed says little about a difference: cse study compares several, with a test.
    """
    from cse_study.pages.runs import Run, called, different_settings, scores_beside

    if len({path.resolve() for path in runs}) < max(len(runs), 2):
        what = "names one run" if len(runs) == 1 else "names a run twice"
        hint = "name two runs or more; cse runs lists them"
        raise CseError(what, where="cse compare", value=" ".join(map(str, runs)), hint=hint)
    loaded = [Run(path) for path in runs]
    names = called(loaded)
    settings, scores = different_settings(loaded), scores_beside(loaded)
    if json:
        about = [{**run.about(), "called": name} for run, name in zip(loaded, names, strict=True)]
        say_json({"runs": about, "settings": settings, "scores": scores})
        return
    if settings:
        table = plain_table("settings that differ", ("setting", *names))
        for path, values in settings.items():
            table.add_row(path, *map(_cell, values))
        say_table(table)
    else:
        echo("no setting differs")
    table = plain_table("scores", ("score", *names, f"{names[-1]} - {names[0]}"))
    for name, numbers in scores.items():
        first, last = numbers[0], numbers[-1]
        cells = ["-" if number is None else f"{number:.2f}" for number in numbers]
        cells.append("-" if first is None or last is None else f"{last - first:+.2f}")
        table.add_row(name, *cells)
    if scores:
        say_table(table)
    else:
        echo("no scores are kept: cse eval RUN adds them")


def plot(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="RUN", help="Folders of runs, or folders with runs in them."),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The page, *.md.")
    ] = Path("plot.md"),
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object: the page, its pictures.")
    ] = False,
) -> None:
    """Write a page of pictures of runs, Markdown with SVG files beside it.

    Runs that differ in their seed alone are one line. cse compare has settings and scores.
    """
    if not runs:
        raise CseError("names no run", where="cse plot", hint="name folders of runs")
    from cse_study.pages.page import check_page
    from cse_study.pages.run_page import run_page
    from cse_study.pages.runs import find_runs

    loaded = find_runs(runs, lambda error: warn(str(error)))
    if not loaded:
        raise CseError("there are no runs", where="cse plot", value=", ".join(map(str, runs)),
                       hint="name folders that `cse train` made, or one above them")  # fmt: skip
    check_page(out, "--out")
    page = run_page(loaded)
    page.write(out)
    pictures = [picture.title for picture in page.pictures]
    if json:
        say_json({"page": str(out), "runs": [str(run.path) for run in loaded],
                  "pictures": pictures})  # fmt: skip
        return
    echo(f"page: {out}, {len(pictures)} picture{'s' * (len(pictures) != 1)} of {len(loaded)} "
        f"run{'s' * (len(loaded) != 1)}")  # fmt: skip
