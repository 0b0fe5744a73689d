"""Entry point of ``cse``: the commands, and what becomes of their errors."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from cse_cli import (
    data,
    encode,
    evaluate,
    list_plugins,
    list_recipes,
    search,
    show_plugin,
    show_recipe,
    train,
)
from cse_cli.console import fail, tell
from cse_cli.flags import take_no_plugin
from cse_cli.installed import Installed
from cse_core import __version__
from cse_core.errors import CseError

INTERRUPTED = 130
"""Exit code after an interrupt: 128 and the number of the signal."""
BROKEN_PIPE = 141
"""Exit code where nobody reads the output any more."""
_PLUGINS, _WORK = "Plugins and recipes", "Train, evaluate, use"


def main() -> None:
    """Run ``cse`` with the arguments of the process."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run a command.

    Args:
        arguments: The command line without the program's name.

    Returns:
        The exit code: 0; 2 after a user's mistake, which was printed; 130 after an interrupt.
    """
    try:
        words, left_out = take_no_plugin(arguments)
        code = _run(words or ["--help"], Installed(left_out))
        sys.stdout.flush()
        return code
    except CseError as error:
        fail(error)
        return 2
    except KeyboardInterrupt:
        tell("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        # The interpreter flushes stdout once more at its end, which would raise again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return BROKEN_PIPE


def _run(words: list[str], installed: Installed) -> int:
    words = train.with_settings(words)
    app = build_app(words, installed)
    try:
        code = app(args=words, prog_name="cse", standalone_mode=False, obj=installed)
    except typer.Abort:
        raise KeyboardInterrupt from None
    except Exception as error:
        # Typer's errors of usage have no public base class, but a public way to be told.
        told = getattr(error, "format_message", None)
        if told is None:
            raise
        raise CseError(_in_one_line(told()), hint=_where_to_look(error)) from None
    return code if isinstance(code, int) else 0


def build_app(words: Sequence[str], installed: Installed) -> typer.Typer:
    """Return the application.

    Args:
        words: The command line, whose choice of parts decides what ``train --help`` shows.
        installed: The installed plugins.
    """
    app = typer.Typer(
        help="Train, evaluate and use contrastive sentence embeddings.",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["--help", "-h"]},
    )
    app.callback()(_options)
    app.command("list-plugins", rich_help_panel=_PLUGINS)(list_plugins.list_plugins)
    app.command("show-plugin", rich_help_panel=_PLUGINS)(show_plugin.show_plugin)
    app.command("list-recipes", rich_help_panel=_PLUGINS)(list_recipes.list_recipes)
    app.command("show-recipe", rich_help_panel=_PLUGINS)(show_recipe.show_recipe)
    app.command("train", rich_help_panel=_WORK)(train.command(words, installed))
    app.command("eval", rich_help_panel=_WORK)(evaluate.evaluate)
    app.command("encode", rich_help_panel=_WORK)(encode.encode)
    app.command("search", rich_help_panel=_WORK)(search.search)
    app.add_typer(data.app, name="data", rich_help_panel=_WORK)
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"cse-toolkit {__version__}")
        raise typer.Exit()


def _options(
    no_plugin: Annotated[
        list[str] | None,
        typer.Option(
            "--no-plugin",
            metavar="NAME",
            help="Leave a plugin out, unseen and not imported; before or after the command; may "
            "be repeated; all leaves every one out. The variable CSE_DISABLE_PLUGINS does the same.",
        ),
    ] = None,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Train, evaluate and use contrastive sentence embeddings."""


def _in_one_line(text: str) -> str:
    told = " ".join(text.split()).rstrip(".")
    return told[:1].lower() + told[1:]


def _where_to_look(error: Exception) -> str | None:
    context = getattr(error, "ctx", None)
    path = getattr(context, "command_path", "cse")
    return f"see {path} --help"
