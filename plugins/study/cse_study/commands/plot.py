"""``cse plot``: a page with pictures of runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cse_cli.terminal.console import echo, say_json, warn
from cse_core.errors import CseError


def plot(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="RUN...", help="Folders of runs, or folders with runs in them."),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The page: one HTML file.")
    ] = Path("plot.html"),
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object: the page, its pictures.")
    ] = False,
) -> None:
    """Write one page with runs beside each other: settings, scores, pictures.

    The page needs no network and no script. Runs that differ in their seed alone are one line.
    """
    if not runs:
        raise CseError("names no run", where="cse plot", hint="name folders of runs")
    from cse_study.pages.page import check_page
    from cse_study.pages.run_page import run_page
    from cse_study.pages.runs import find_runs

    found = find_runs(runs, lambda error: warn(str(error)))
    if not found:
        raise CseError("there are no runs", where="cse plot", value=", ".join(map(str, runs)),
                       hint="name folders that `cse train` made, or one above them")  # fmt: skip
    check_page(out, "--out")
    page = run_page(found)
    page.write(out)
    pictures = [picture.title for section in page.sections for picture in section.pictures]
    if json:
        say_json({"page": str(out), "runs": [str(run.path) for run in found],
                  "pictures": pictures})  # fmt: skip
        return
    echo(f"page: {out}, {len(pictures)} picture{'s' * (len(pictures) != 1)} of {len(found)} "
        f"run{'s' * (len(found) != 1)}")  # fmt: skip
