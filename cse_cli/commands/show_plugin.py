"""``cse show-plugin``: a plugin's parts with their options, and its recipes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import typer

from cse_cli.options.completion import complete_plugin
from cse_cli.plugins.installed import facts, installed
from cse_cli.terminal.console import console, echo, plain_table, say_json, say_table
from cse_cli.terminal.markdown import markdown_table
from cse_core.records import ComponentSpec, ConfiguredSpec, Record


def show_plugin(
    context: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="A plugin's name, its distribution, or distribution:name.",
            autocompletion=complete_plugin,
        ),
    ],
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print its own options as a table for a README.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show a plugin: its parts, options, papers and recipes."""
    loaded = installed(context)
    infos = loaded.manager.find(name)
    if markdown:
        for info in infos:
            echo(options_table(info.parts))
        return
    plugins = [
        {
            **facts(info),
            "parts": [_part(record) for record in info.parts],
            "commands": loaded.commands.of(info.distribution),
        }
        for info in infos
    ]
    if json:
        say_json({"plugins": plugins})
        return
    for number, plugin in enumerate(plugins):
        if number:
            echo()
        _show(plugin)


def options_table(records: Iterable[Record]) -> str:
    """Return the options that parts add to those of their kind, as a table in Markdown."""
    rows = []
    for record in records:
        if not isinstance(record, ConfiguredSpec):
            continue
        for option in _options(record):
            if option["own"]:
                default = "must be set" if option["required"] else f"`{option['default']}`"
                rows.append((f"`{option['path']}`", option["type"], default, option["description"]))
    heads = ("option", "type", "default", "what it does")
    return markdown_table(heads, rows) if rows else "It has no options of its own."


def _part(record: Record) -> dict[str, Any]:
    text: dict[str, Any] = {
        "kind": record.kind,
        "name": record.name,
        "summary": record.summary,
        "paper": getattr(record, "paper", ""),
    }
    if isinstance(record, ComponentSpec):
        for what in ("provides", "requires"):
            text[what] = _capabilities(record, what)
    if isinstance(record, ConfiguredSpec):
        text["options"] = _options(record)
    if getattr(record, "synthetic", False):
        text["synthetic"] = True
    return text


def _capabilities(record: Any, field: str) -> list[str] | None:
    """List the capabilities of a part by default; None where an option must be set."""
    from cse_core.capabilities import parse_needs

    options = record.default_options()
    if options is None and callable(getattr(record, field)):
        return None
    needs = parse_needs(record.declared(field, options))
    return [str(need) for alternatives in needs for need in alternatives]


def _options(record: Any) -> list[dict[str, Any]]:
    from cse_cli.options.descriptions import describe
    from cse_core.loading import load_factory
    from cse_engine.compose.values import describe_type, format_value

    return [
        {
            "path": f"{record.kind}.{record.name}.{name}",
            "type": describe_type(info),
            "default": None
            if info.is_required()
            else format_value(info.get_default(call_default_factory=True)),
            "required": info.is_required(),
            "own": name not in load_factory(type(record).options).model_fields,
            "description": describe(record.options_class, name),
        }
        for name, info in record.options_class.model_fields.items()
    ]


def _show(plugin: dict[str, Any]) -> None:
    echo(f"{plugin['distribution']} {plugin['version']} ({plugin['key']}): {plugin['status']}")
    if plugin["summary"]:
        echo(plugin["summary"])
    if plugin["reason"]:
        echo(f"{plugin['reason']}\nto fix it: {plugin['fix']}")
    for command in plugin["commands"]:
        echo(f"command {command}: cse {command} --help")
    for part in plugin["parts"]:
        echo()
        console().print(f"{part['kind']} {part['name']}", style="bold", end="")
        echo(f": {part['summary']}")
        if part["paper"]:
            echo(f"  paper: {part['paper']}")
        for what in ("provides", "requires"):
            if part.get(what):
                echo(f"  {what}: {', '.join(part[what])}")
            elif what in part and part[what] is None:
                echo(f"  {what}: by its options")
        if part["kind"] == "recipe":
            echo(f"  cse show-recipe {part['name']}; cse train --recipe {part['name']}")
        if part["kind"] == "study":
            echo(f"  cse study {part['name']} --dry-run")
        if part.get("options"):
            table = plain_table("", ("option", "type", "default", "what it does"))
            for option in sorted(part["options"], key=lambda entry: not entry["own"]):
                default = "must be set" if option["required"] else option["default"]
                table.add_row(option["path"], option["type"], default, option["description"])
            say_table(table)
