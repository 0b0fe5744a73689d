"""``cse show-recipe``: what a recipe comes to, and its text."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cse_cli.options.completion import complete_model, complete_recipe
from cse_cli.options.flags import Choice
from cse_cli.plugins.installed import Installed, installed
from cse_cli.terminal.console import echo, say_json, warn
from cse_core.errors import CseError
from cse_core.records import RecipeSpec

if TYPE_CHECKING:
    from cse_engine.compose.reading import Document


def show_recipe(
    context: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME|FILE",
            help="Installed recipe, TOML file, or the folder of a run.",
            autocompletion=complete_recipe,
        ),
    ],
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            metavar="MODEL",
            help="Show the settings for this encoder.",
            autocompletion=complete_model,
        ),
    ] = None,
    toml: Annotated[bool, typer.Option("--toml", help="Print the file's text.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show a recipe: its parts, its settings, its file."""
    from cse_engine.compose.reading import read_recipe

    if toml and json:
        raise CseError("--toml and --json cannot go together", hint="leave one out")
    plugins = installed(context)
    documents = read_recipe(name, plugins.registry)
    text = _text(name, plugins)
    if toml:
        echo(text.rstrip("\n"))
        return
    plan, problem = _plan(Choice(recipe=name, model=model), plugins)
    blocks = [block for document in documents for block in _blocks(document)]
    last = documents[-1]
    if json:
        said = {
            "name": last.name,
            "summary": last.table.get("summary", ""),
            "paper": last.table.get("paper", ""),
            "chain": [document.label for document in documents],
            "plan": plan["data"] if plan else None,
            "problem": problem,
            "when": blocks,
            "text": text,
        }
        say_json(said)
        return
    echo(" <- ".join(document.label for document in reversed(documents)))
    for key in ("summary", "paper"):
        if last.table.get(key):
            echo(f"{key}: {last.table[key]}")
    if plan:
        for line in [*plan["lines"], "changed settings:"]:
            echo(line)
        for line in plan["changed"] or ["none"]:
            echo(f"  {line}")
    else:
        warn(f"it cannot be resolved here: {problem}")
    if blocks:
        echo("per encoder:")
    for block in blocks:
        echo(f"  when {block['when']}: {'; '.join(block['changes']) or 'nothing changes'}")
    typed = quote(name)
    echo(f"its text: cse show-recipe {typed} --toml; train it: cse train --recipe {typed}")


def _plan(choice: Choice, plugins: Installed) -> tuple[dict[str, Any] | None, str | None]:
    from cse_cli.training.plan import changed_settings, plan_dict, plan_lines
    from cse_cli.training.resolving import composition_of

    try:
        composition = composition_of(choice, plugins, look=False)
    except CseError as error:
        return None, "; ".join(error.line().splitlines())
    return {
        "lines": plan_lines(composition)[1:],
        "data": plan_dict(composition),
        "changed": changed_settings(composition),
    }, None


def _blocks(document: Document) -> list[dict[str, Any]]:
    from cse_engine.compose.reading import CONDITIONS
    from cse_engine.compose.values import format_value

    cases = []
    for block in document.table.get("when", ()):
        conditions = [f"{key} {format_value(block[key])}" for key in CONDITIONS if key in block]
        changes = []
        for key, content in block.items():
            if key in CONDITIONS:
                continue
            if isinstance(content, dict):
                changes += [f"{key}.{name} = {format_value(v)}" for name, v in content.items()]
            elif isinstance(content, list):
                changes += [f"{key} {format_value(item)}" for item in content]
            else:
                changes.append(str(content))
        cases.append({"when": ", ".join(conditions), "changes": changes})
    return cases


def _text(name: str, plugins: Installed) -> str:
    from pathlib import Path

    from cse_core.files import RUN_FILE, file_text
    from cse_core.loading import package_path

    if plugins.registry.has("recipe", name):
        return file_text(package_path(plugins.registry.one(RecipeSpec, name).spec.path))
    path = Path(name).expanduser()
    return file_text(path / RUN_FILE if path.is_dir() else path)
