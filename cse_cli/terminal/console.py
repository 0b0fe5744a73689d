"""What the commands print: results on stdout; errors, warnings and progress on stderr.

Whatever is printed is cleaned here: a text, a file's name or a plugin's record cannot steer the
terminal.
"""

from __future__ import annotations

import errno
import json
import os
import re
import sys
from collections.abc import Iterable
from contextlib import suppress
from importlib.util import find_spec
from typing import IO, TYPE_CHECKING, Any

from cse_core.errors import CseError, CseErrors

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_WIDE = 160
"""Columns of a table that goes to a file or a pipe."""
_HEADING = 12
"""Columns of the headings beside an outline."""
_UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    r"\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufeff\uffa0\ufff0-\ufffb"
    r"\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f]"
)
"""What :func:`cleaned` escapes; direction marks and characters without width are of category Cf."""
_NUMBERS = re.compile(r"\[\n\s+-?\d[\d.e+,\s-]*\]")
"""A list of numbers as ``json.dumps`` indents it; no text can hold its line break."""


class OutputLost(Exception):
    """Stdout cannot be written to; not an ``OSError``, of which Typer makes an exit.

    Attributes:
        broken_pipe: Whether its reader has left.
    """

    def __init__(self, error: OSError) -> None:
        super().__init__(error.strerror or str(error))
        self.broken_pipe = error.errno == errno.EPIPE


def prepare_streams() -> None:
    """Let closed streams lead nowhere, escape what the locale cannot hold, forget odd widths."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # which takes the lowest number that is free: this one
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # a pipe that took the place of a file cannot tell its position
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    for name in ("COLUMNS", "LINES", "TERMINAL_WIDTH"):
        if not re.fullmatch("[1-9][0-9]{1,3}", os.environ.get(name, "80")):
            del os.environ[name]


def cleaned(text: str) -> str:
    """Return a text with an escape in place of each character that cannot be seen.

    Those are control characters but line break and tabulator, direction marks, characters without
    width, tags, and surrogates, of which names of files that are no text consist. The escapes are
    those of JSON: inside JSON they stand for the same text.
    """
    return _UNSEEN.sub(lambda match: _escaped(match[0]), text)


def literal(text: str) -> str:
    """Return a text that the markup of help leaves as it is, cleaned."""
    return re.sub(r"(\\*)\[", r"\1\1\\[", cleaned(text))


def _escaped(text: str) -> str:
    units = text.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))


def _write(text: str, stream: IO[str]) -> None:
    """Write a cleaned text; raises ``OutputLost``, of stderr nothing: nobody reads it then."""
    try:
        stream.write(text)
        stream.flush()
    except OSError as error:
        if stream is sys.stdout:
            raise OutputLost(error) from None


def _label(text: str, colour: str, stream: IO[str]) -> str:
    """Return a text for a stream, in colour on a terminal."""
    plain = not colour or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return text if plain or not stream.isatty() else f"\x1b[1;{colour}m{text}\x1b[0m"


def echo(text: str = "", colour: str = "") -> None:
    """Print a line of the result on stdout, on a terminal in an ANSI colour such as ``32``.

    Raises:
        OutputLost: If stdout cannot be written to.
    """
    _write(f"{_label(cleaned(text), colour, sys.stdout)}\n", sys.stdout)


def echo_err(text: str) -> None:
    """Print a line for the reader on stderr, where it is in nobody's way."""
    _write(f"{cleaned(text)}\n", sys.stderr)


def warn(text: str) -> None:
    """Print a warning on stderr."""
    _write(f"{_label('warning:', '33', sys.stderr)} {cleaned(text)}\n", sys.stderr)


def fail(error: CseError) -> None:
    """Print an error on stderr, a line for each mistake."""
    mistakes = error.errors if isinstance(error, CseErrors) else (error,)
    for mistake in mistakes:
        _write(f"{_label('error:', '31', sys.stderr)} {cleaned(mistake.line())}\n", sys.stderr)


def say_json(value: Any) -> None:
    """Print a value as JSON on stdout, lists of numbers each in one line."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    echo(_NUMBERS.sub(lambda match: " ".join(match[0].split()), text))


def say_json_line(value: Any) -> None:
    """Print a value as a line of JSON on stdout, at once."""
    echo(json.dumps(value, ensure_ascii=False))
    sys.stdout.flush()


def say_table(table: Table) -> None:
    """Print a table on stdout, as wide as the terminal, or wide where there is none."""
    try:
        console().print(table)
        sys.stdout.flush()
    except OSError as error:
        raise OutputLost(error) from None


def outline(lines: Iterable[str]) -> list[tuple[str, list[str]]]:
    """Return the headings of ``heading: text`` and indented lines, each with what follows it."""
    rows: list[tuple[str, list[str]]] = []
    for line in lines:
        if line[:1].isspace():
            rows[-1][1].append(line.strip())
        else:
            head, _, rest = line.partition(": ")
            rows.append((head.rstrip(":"), [rest] if rest else []))
    return rows


def say_outline(lines: list[str]) -> None:
    """Print such lines on stdout; a terminal shows headings in colour beside wrapped text."""
    if not sys.stdout.isatty():
        echo("\n".join(lines))
        return
    from textwrap import fill

    from rich.table import Table
    from rich.text import Text

    table, width = Table.grid(padding=(0, 2)), max(8, console().width - _HEADING - 2)
    table.add_column(max_width=_HEADING)
    table.add_column(overflow="fold")
    for head, texts in outline(lines):
        colour = "yellow" if head == "warnings" else "cyan"
        wrapped = (fill(cleaned(text), width, subsequent_indent="  ") for text in texts)
        table.add_row(Text(cleaned(head), f"bold {colour}"), "\n".join(wrapped))
    say_table(table)


def console(*, err: bool = False) -> Console:
    """Return the console on stdout or stderr.

    It prints texts as they are but cleaned: brackets and colons in them are no markup.
    """
    from rich.console import Console

    class CleanConsole(Console):
        def render_str(self, text: str, **settings: Any) -> Any:
            settings.update(markup=False, emoji=False)
            return super().render_str(cleaned(text), **settings)

        def render(self, renderable: Any, options: Any = None) -> Any:
            for segment in super().render(renderable, options):
                text = segment.text if segment.control is not None else cleaned(segment.text)
                yield segment if text == segment.text else segment._replace(text=text)

    plain: dict[str, Any] = {"highlight": False, "markup": False, "emoji": False}
    if in_notebook():
        return CleanConsole(**plain)
    stream = sys.stderr if err else sys.stdout
    if not stream.isatty():
        plain |= {"width": _WIDE, "force_terminal": False}
    return CleanConsole(file=stream, **plain)


def in_notebook() -> bool:
    """Tell whether output goes to a notebook that can draw a bar."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return type(shell).__name__ == "ZMQInteractiveShell" and find_spec("ipywidgets") is not None


def plain_table(title: str, columns: Iterable[str]) -> Table:
    """Return an empty table in the form that all commands use."""
    from rich.table import Table

    table = Table(title=title or None, title_justify="left", caption_justify="left")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
