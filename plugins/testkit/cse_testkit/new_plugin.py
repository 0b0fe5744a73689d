"""``cse new-plugin``: a package that installs, trains and passes its tests as it is written."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cse_cli.plugins.installed import installed
from cse_cli.terminal.console import echo


def new_plugin(
    context: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="Of the parts and the recipe: margin makes the package cse-margin."
        ),
    ],
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            metavar="KIND,…",
            help="What it brings: aug, pool, positives, negatives, loss, branch, metric; by "
            "default a loss.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The new folder; by default ./cse-NAME."),
    ] = None,
    author: Annotated[str, typer.Option(metavar="NAME", help="Who writes it.")] = "",
    paper: Annotated[
        str, typer.Option(metavar="TEXT", help="The paper: 'Wu et al.: Name, ACL 2024'.")
    ] = "",
) -> None:
    """Write the package of a plugin: options, records, parts, a recipe, tests, CI.

    Each part is a small one that works, with its shapes in comments and a slow version in the
    tests: change both to those of your method.
    """
    from cse_testkit.package import Package, kinds_of

    package = Package.named(name, kinds_of(kind or ["loss"]), author=author, paper=paper)
    package.check_names(installed(context).manager.infos)
    folder = package.write(out or Path(package.distribution))
    echo(f"written: {folder}")
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            echo(f"  {path.relative_to(folder)}")
    echo("next:")
    echo(f'  pip install -e "{folder}"')
    echo(f"  cse train --recipe {package.name} --train.max_steps 20")
    echo(f"  cse check-plugin {package.distribution}")
    echo(f"  pytest {folder}")
