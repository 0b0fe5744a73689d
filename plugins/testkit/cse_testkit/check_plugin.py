"""``cse check-plugin``: every promise of an installed plugin, without pytest."""

from __future__ import annotations

import tomllib
from collections import Counter
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cse_cli.api import echo, installed, say_json
from cse_core.errors import CseError

if TYPE_CHECKING:
    from cse_testkit.promises import Asked

BROKEN = 1
"""Exit code where a promise is broken."""


def check_plugin(
    context: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="DIST",
            help="An installed plugin or distribution; by default that of ./pyproject.toml.",
        ),
    ] = None,
    pairs: Annotated[
        bool, typer.Option("--pairs/--no-pairs", help="Also train its parts with every other one.")
    ] = True,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check that an installed plugin keeps its contract; name the file to fix, a line each.

    Its parts and recipes run some steps on a tiny random encoder and made-up texts. Its
    pyproject.toml, in the working folder where it is not installed from one, may declare columns
    in tool.cse.columns and options in tool.cse.options. The exit code is 1 where a promise is
    broken.
    """
    plugins = installed(context)
    plugins.leave_out_again()  # suites load the plugins, some in processes of their own
    manager = plugins.manager
    distribution = manager.find(name or _of_this_folder())[0].distribution
    infos = [info for info in manager.infos if info.distribution == distribution]
    from cse_testkit.checking import check

    if not json and (spec := find_spec(infos[0].module.partition(".")[0])) and spec.origin:
        echo(f"{infos[0].label} in {Path(spec.origin).parent}")
    promises: list[Asked] = []
    for part, several in groupby(
        check(distribution, infos, with_pairs=pairs),
        key=lambda item: "pairs" if item.part.startswith("pair ") else item.part,
    ):
        asked = list(several)
        promises += asked
        if not json and any(item.status != "not meant" for item in asked):
            _show(part, asked)
    count = Counter(item.status for item in promises)
    if json:
        rows = [vars(item) for item in promises]
        say_json({"distribution": distribution, "broken": count["broken"], "promises": rows})
    else:
        echo(f"{distribution}: {kept_line(promises)}, {count['broken']} broken")
    if count["broken"]:
        raise typer.Exit(BROKEN)


def _of_this_folder() -> str:
    """Return the distribution whose ``pyproject.toml`` is in the working folder."""
    try:
        return str(tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]["name"])
    except (OSError, ValueError, KeyError, TypeError):
        hint = "cse check-plugin DIST, or run it in the folder of a plugin's pyproject.toml"
        raise CseError("no distribution is named, and none is here", hint=hint) from None


def kept_line(asked: list[Asked]) -> str:
    """Say how many promises are kept; pairs that the composer refuses are counted apart."""
    kept = sum(item.status == "kept" for item in asked)
    refused = sum(item.detail.startswith("refused: ") for item in asked)
    pairs = f", {refused} pairs refused with a reason" if refused else ""
    return f"{kept - refused} promises kept{pairs}"


def _show(part: str, asked: list[Asked]) -> None:
    count = Counter(item.status for item in asked)
    line = f"{part}: {kept_line(asked)}"
    unasked = Counter(item.detail for item in asked if item.status == "not asked")
    if count["broken"]:
        line += f", {count['broken']} broken, {unasked.pop('', 0)} not asked until it is fixed"
    echo("; ".join([line, *(f"{count} not asked: {why}" for why, count in unasked.items())]))
    for item in asked:
        if item.status == "broken":
            fix = f": fix {item.file}" if item.file else ""
            echo(f"BROKEN {item.part}: {item.name}: {item.detail}{fix}")
