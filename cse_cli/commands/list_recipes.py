"""``cse list-recipes``: the installed recipes."""

from __future__ import annotations

from typing import Annotated

import typer

from cse_cli.plugins.installed import about, installed
from cse_cli.terminal.console import echo, plain_table, say_json, say_table
from cse_core.records import RecipeSpec


def list_recipes(
    context: typer.Context,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the installed recipes."""
    recipes = installed(context).registry.all(RecipeSpec)
    if json:
        say_json({"recipes": [about(recipe, "paper") for recipe in recipes]})
        return
    if not recipes:
        echo("no recipe is installed; cse train works without one, or with a TOML file of your own")
        return
    table = plain_table("", ("recipe", "what it does", "paper", "from"))
    for recipe in recipes:
        table.add_row(recipe.name, recipe.spec.summary, recipe.spec.paper, recipe.label)
    say_table(table)
    echo("cse show-recipe NAME shows one, cse train --recipe NAME trains it")
