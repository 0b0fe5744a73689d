"""``cse compare``: runs side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cse_cli.terminal.console import echo, plain_table, say_json, say_table
from cse_core.errors import CseError


def compare(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN RUN", help="Folders of runs, two or more.")
    ],
    all_: Annotated[
        bool,
        typer.Option(
            "--all", help="Every number that was kept, and every option of a part that a run lacks."
        ),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Put runs side by side: the settings that differ, and the scores.

    Scores that were measured in other settings, or on other texts, stand in rows of their own.
    One seed says little about a difference: cse study compares several, with a test.
    """
    from cse_study.pages.comparing import called, different_settings, scores_beside
    from cse_study.pages.run_files import read_run

    if len({path.resolve() for path in runs}) < max(len(runs), 2):
        what = "names one run" if len(runs) == 1 else "names a run twice"
        hint = "name two runs or more; cse runs lists them"
        raise CseError(what, where="cse compare", value=" ".join(map(str, runs)), hint=hint)
    found = [read_run(path) for path in runs]
    names = called(found)
    settings, scores = different_settings(found, every=all_), scores_beside(found, every=all_)
    if json:
        about = [{**run.about(), "called": name} for run, name in zip(found, names, strict=True)]
        say_json({"runs": about, "settings": settings, "scores": scores})
        return
    if settings:
        table = plain_table("settings that differ", ("setting", *names))
        for path, values in settings.items():
            table.add_row(path, *[_plain(value) for value in values])
        say_table(table)
    else:
        echo("no setting differs")
    table = plain_table("scores", ("score", *names, f"{names[-1]} - {names[0]}"))
    for name, numbers in scores.items():
        shown = ["-" if number is None else f"{number:.2f}" for number in numbers]
        first, last = numbers[0], numbers[-1]
        shown.append("-" if first is None or last is None else f"{last - first:+.2f}")
        table.add_row(name, *shown)
    if scores:
        say_table(table)
    else:
        echo("no scores are kept: cse eval RUN adds them")


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
