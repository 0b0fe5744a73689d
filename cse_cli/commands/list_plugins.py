"""``cse list-plugins``: every installed plugin, what became of it and what it brings."""

from __future__ import annotations

from typing import Annotated, Any, get_args

import typer

from cse_cli.options.completion import complete_kind, complete_status
from cse_cli.plugins.installed import Installed, facts, installed
from cse_cli.terminal.console import echo, plain_table, say_json, say_table
from cse_core.errors import CseError, did_you_mean
from cse_core.hookspecs import NOUNS
from cse_core.registry.plugin_info import Status


def list_plugins(
    context: typer.Context,
    kind: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help=f"Only parts of a kind: {', '.join(NOUNS)}.",
            autocompletion=complete_kind,
        ),
    ] = None,
    status: Annotated[
        str | None,
        typer.Option(
            metavar="STATUS",
            help="Only plugins that are active, blocked or broken.",
            autocompletion=complete_status,
        ),
    ] = None,
    cite: Annotated[
        str | None,
        typer.Option(
            metavar="WHAT",
            help="BibTeX of the papers behind a run's folder, a recipe, a plugin, or all.",
        ),
    ] = None,
    available: Annotated[
        bool, typer.Option("--available", help="Those of the index that CSE_PLUGIN_INDEX names.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the installed plugins, and why one is broken."""
    first = "--available" if available else "--cite" if cite is not None else None
    others = {"--cite": cite if available else None, "--kind": kind, "--status": status}
    for flag, value in others.items():
        if first and value is not None:
            raise CseError(f"is not used by {first}", where=flag, value=value, hint="leave it out")
    if available:
        _available(installed(context), json)
        return
    if cite is not None:
        _cite(cite, installed(context), json)
        return
    _check("--kind", kind, tuple(NOUNS))
    _check("--status", status, get_args(Status))
    plugins = installed(context)
    manager, commands = plugins.manager, plugins.commands
    shown = [
        {**_as_dict(info, kind), "commands": commands.of(info.distribution)}
        for info in manager.infos
        if status in (None, info.status)
    ]
    if kind is not None:
        shown = [plugin for plugin in shown if plugin["parts"]]
    if json:
        say_json({"plugins": shown, "unmatched": plugins.unmatched})
        return
    if not shown:
        echo("no installed plugin matches")
        return
    table = plain_table("", ("plugin", "version", "status", "parts"))
    table.columns[0].style = "bold cyan"
    for plugin in shown:
        parts = [
            f"{group}: {', '.join(part['name'] for part in items)}"
            if group != "study" or kind is not None
            else f"study: {len(items)}, see cse study --list"
            for group, items in plugin["parts"].items()
        ]
        if plugin["commands"] and kind is None:
            parts.append(f"command: {', '.join(plugin['commands'])}")
        if plugin["reason"]:
            parts += [plugin["reason"], plugin["fix"]]
        table.add_row(_name(plugin), plugin["version"], plugin["status"], "\n".join(parts))
    say_table(table)


def _available(plugins: Installed, json: bool) -> None:
    from cse_cli.plugins.index import published

    here = {info.distribution: info.version for info in plugins.manager.infos}
    index = published()
    if json:
        say_json({"plugins": [{**vars(one), "installed": here.get(one.name)} for one in index]})
        return
    table = plain_table("", ("distribution", "version", "installed", "what it is for"))
    for one in index:
        table.add_row(one.name, one.version, here.get(one.name, ""), one.summary)
    say_table(table)


def _cite(what: str, plugins: Installed, json: bool) -> None:
    from cse_cli.plugins.citations import cited

    entries = [{"paper": p, "bibtex": getattr(p, "bibtex", None)} for p in cited(what, plugins)]
    if json:
        say_json({"papers": entries})
    elif entries:  # BibTeX skips a comment, which one without an entry is
        echo("\n\n".join(entry["bibtex"] or f"% {entry['paper']}" for entry in entries))
    else:
        echo(f"% no part of {what} names a paper")


def _name(plugin: dict[str, Any]) -> str:
    usual = plugin["distribution"].removeprefix("cse-") == plugin["name"]
    return str(plugin["distribution"] if usual else plugin["key"])


def _as_dict(info: Any, kind: str | None) -> dict[str, Any]:
    parts: dict[str, list[dict[str, str]]] = {}
    for part in info.parts:
        if kind in (None, part.kind):
            paper = getattr(part, "paper", "")
            about = {"name": part.name, "summary": part.summary, "paper": paper}
            parts.setdefault(part.kind, []).append(about)
    return {**facts(info), "parts": parts}


def _check(flag: str, value: str | None, known: tuple[str, ...]) -> None:
    if value is not None and value not in known:
        raise CseError("unknown name", where=flag, value=value, hint=did_you_mean(value, known))
