"""``cse plot``: a page with pictures of runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cse_cli.plugins.installed import installed
from cse_cli.terminal.console import echo, echo_err, plain_table, say_json, say_table, warn
from cse_core.errors import CseError, did_you_mean


def plot(
    context: typer.Context,
    runs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="RUN...", help="Folders of runs, or folders with runs in them."),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The page: one HTML file.")
    ] = Path("plot.html"),
    show: Annotated[
        str | None,
        typer.Option(metavar="NAME,NAME", help="Only these pictures; see --list."),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the pictures.")] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object: the page, its pictures.")
    ] = False,
) -> None:
    """Write one page with runs beside each other: settings, scores, pictures.

    The page needs no network and no script. Runs that differ in their seed alone are one line.
    """
    from cse_study.pages.run_page import KINDS, run_page

    if list_:
        if json:
            say_json({"pictures": dict(KINDS)})
            return
        table = plain_table("", ("picture", "what it shows, and what it is read from"))
        for name, words in KINDS.items():
            table.add_row(name, words)
        say_table(table)
        return
    if not runs:
        raise CseError("names no run", where="cse plot", hint="name folders of runs")
    wanted = [name.strip() for name in (show or ",".join(KINDS)).split(",") if name.strip()]
    if not wanted:
        raise CseError("names no picture", where="--show", value=show, hint="see cse plot --list")
    for name in wanted:
        if name not in KINDS:
            hint = did_you_mean(name, list(KINDS))
            raise CseError("no such picture", where="--show", value=name, hint=hint)
    from cse_study.pages.page import check_drawing, check_file
    from cse_study.pages.runs import find_runs

    found = find_runs(runs, lambda error: warn(str(error)))
    if not found:
        raise CseError("there are no runs", where="cse plot", value=", ".join(map(str, runs)),
                       hint="name folders that `cse train` made, or one above them")  # fmt: skip
    check_drawing("--out")
    check_file(out, "--out")
    page = run_page(found, wanted, installed(context))
    page.write(out)
    pictures = [picture.title for section in page.sections for picture in section.pictures]
    if json:
        say_json({"page": str(out), "runs": [str(run.path) for run in found],
                  "pictures": pictures})  # fmt: skip
        return
    if not pictures and show:
        for name in wanted:
            echo_err(f"note: {name} is {KINDS[name]}; these runs have none")
    echo(f"page: {out}, {len(pictures)} picture{'s' * (len(pictures) != 1)} of {len(found)} "
        f"run{'s' * (len(found) != 1)}")  # fmt: skip
