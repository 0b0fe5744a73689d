"""What the commands print: results on stdout; errors, warnings and progress on stderr."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import typer

from cse_core.errors import CseError, CseErrors

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_WIDE = 160
"""Columns of a table that goes to a file or a pipe."""
_NUMBERS = re.compile(r"\[\n\s+-?\d[\d.e+,\s-]*\]")
"""A list of numbers as ``json.dumps`` indents it; no text can hold its line break."""


def say(text: str = "") -> None:
    """Print a line of the result on stdout."""
    typer.echo(text)


def tell(text: str) -> None:
    """Print a line for the reader on stderr, where it is in nobody's way."""
    typer.echo(text, err=True)


def warn(text: str) -> None:
    """Print a warning on stderr."""
    typer.echo(f"{_styled('warning:', 'yellow')} {text}", err=True)


def fail(error: CseError) -> None:
    """Print an error on stderr, a line for each mistake."""
    mistakes = error.errors if isinstance(error, CseErrors) else (error,)
    for mistake in mistakes:
        typer.echo(f"{_styled('error:', 'red')} {mistake.line()}", err=True)


def say_json(value: Any) -> None:
    """Print a value as JSON on stdout, lists of numbers each in one line."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    typer.echo(_NUMBERS.sub(lambda found: " ".join(found[0].split()), text))


def say_table(table: Table) -> None:
    """Print a table on stdout, as wide as the terminal, or wide where there is none."""
    console().print(table)


def console() -> Console:
    """Return the console on stdout, which prints texts as they are, brackets and colons too."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else _WIDE
    return Console(width=width, highlight=False, markup=False, emoji=False)


def plain_table(title: str, columns: Iterable[str]) -> Table:
    """Return an empty table in the form that all commands use."""
    from rich.table import Table

    table = Table(title=title or None, title_justify="left", caption_justify="left")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _styled(text: str, colour: str) -> str:
    if os.environ.get("NO_COLOR") or not sys.stderr.isatty():
        return text
    return typer.style(text, fg=colour, bold=True)
