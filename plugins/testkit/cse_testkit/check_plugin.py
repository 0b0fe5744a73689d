"""``cse check-plugin``: every promise of an installed plugin, without pytest."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cse_cli.plugins.installed import installed
from cse_cli.terminal.console import echo, plain_table, say_json, say_table
from cse_core.errors import CseError

if TYPE_CHECKING:
    from cse_testkit.checking import Checked

BROKEN = 1
"""Exit code where a promise is broken."""


def check_plugin(
    context: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[DIST]",
            help="An installed plugin or distribution; by default that of ./pyproject.toml.",
        ),
    ] = None,
    matrix: Annotated[
        bool, typer.Option("--matrix", help="Show what became of each pair of parts, as a table.")
    ] = False,
    pairs: Annotated[
        bool,
        typer.Option("--pairs/--no-pairs", help="Train its parts with every other installed one."),
    ] = True,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Ask every promise of an installed plugin, and say what to fix in which file.

    Its parts and recipes run some steps on a tiny random encoder and made-up texts. The exit code
    is 1 where a promise is broken.
    """
    name = name or _of_this_folder()
    found = installed(context)
    distribution = found.manager.find(name)[0].distribution
    infos = [info for info in found.manager.infos if info.distribution == distribution]
    own = [each for each in found.commands.all if each.name in found.commands.of(distribution)]
    seconds = sum(found.manager.seconds.get(info.key, 0.0) for info in infos)
    from cse_testkit.checking import check

    promises: list[Checked] = []
    for part, several in groupby(
        check(infos, own, seconds, with_pairs=pairs), key=lambda each: each.part
    ):
        asked = list(several)
        promises += asked
        if not json and not part.startswith("pair "):
            _show(part, asked)
    broken = sum(each.ok is False for each in promises)
    if json:
        say_json(
            {
                "distribution": distribution,
                "load_ms": round(1000 * seconds, 1),
                "broken": broken,
                "promises": [vars(each) for each in promises],
            }
        )
    else:
        _show_pairs([each for each in promises if each.part.startswith("pair ")], matrix)
        kept = sum(each.ok is True for each in promises)
        echo(f"{distribution}: {kept} promises kept, {broken} broken")
    if broken:
        raise typer.Exit(BROKEN)


def _of_this_folder() -> str:
    """Return the distribution whose ``pyproject.toml`` is in the working folder.

    Raises:
        CseError: If there is none, or it has no name.
    """
    path = Path("pyproject.toml")
    try:
        return str(tomllib.loads(path.read_text(encoding="utf-8"))["project"]["name"])
    except (OSError, ValueError, KeyError, TypeError):
        hint = "cse check-plugin DIST, or run it in the folder of a plugin's pyproject.toml"
        raise CseError("no distribution is named, and none is here", hint=hint) from None


def _show(part: str, asked: Sequence[Checked]) -> None:
    broken = [each for each in asked if each.ok is False]
    count = f"{sum(each.ok is True for each in asked)} promises kept"
    if broken:
        waiting = sum(each.ok is None and not each.detail for each in asked)
        count += f", {len(broken)} BROKEN, {waiting} not asked until it is fixed"
    echo(f"{part}: {count}")
    for each in broken:
        echo(f"  {each.file}: {each.name}")
        echo(f"    promised: {each.says}")
        echo(f"    found: {each.detail}")


def _show_pairs(tried: Sequence[Checked], matrix: bool) -> None:
    if not tried:
        return
    refused = sum(each.detail.startswith("refused") for each in tried)
    broken = [each for each in tried if each.ok is False]
    trained = len(tried) - refused - len(broken)
    words = f"{trained} train, {refused} refused with a reason, {len(broken)} BROKEN"
    echo(f"pairs with installed parts: {words}")
    for each in broken:
        echo(f"  {each.file}: {each.part.removeprefix('pair ')}: {each.detail}")
    if matrix:
        table = plain_table("", ("part", "with", "what became of it"))
        for each in tried:
            one, _, other = each.part.removeprefix("pair ").partition(" + ")
            table.add_row(one, other, each.detail)
        say_table(table)
