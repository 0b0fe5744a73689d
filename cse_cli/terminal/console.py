"""What the commands print: results on stdout; errors, warnings and progress on stderr.

Whatever is printed is cleaned here: a text, a file's name or a plugin's record cannot steer the
terminal. :func:`clean_streams` cleans what others print too.
"""

from __future__ import annotations

import codecs
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
_UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    r"\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufeff\uffa0\ufff0-\ufffb"
    r"\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f]"
)
"""What :func:`cleaned` escapes; direction marks and characters without width are of category Cf."""
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_STEERING = re.compile(rf"({_COLOURS.pattern}|\r)")
_RETURNS = re.compile(r"\r+\n?")
_NUMBERS = re.compile(r"\[\n\s+-?\d[\d.e+,\s-]*\]")
"""A list of numbers as ``json.dumps`` indents it; no text can hold its line break."""


def cleaned(text: str) -> str:
    """Return a text with an escape in place of each character that cannot be seen.

    Those are control characters but line break and tabulator, direction marks, characters without
    width, tags, and surrogates, of which names of files that are no text consist. The escapes are
    those of JSON: inside JSON they stand for the same text.
    """
    return _UNSEEN.sub(lambda found: _escaped(found[0]), text)


def literal(text: str) -> str:
    """Return a text that the markup of help leaves as it is, cleaned."""
    return re.sub(r"(\\*)\[", r"\1\1\\[", cleaned(text))


def _escaped(text: str) -> str:
    units = text.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))


class CleanStream:
    """A text stream that cleans what is written to it.

    A library's colours are kept on a terminal and dropped elsewhere, and its carriage returns,
    which move a bar there, begin a new line elsewhere.

    Attributes:
        under: The stream itself, which takes what is cleaned already.
    """

    def __init__(self, under: IO[str]) -> None:
        self.under = under

    def __getattr__(self, name: str) -> Any:
        return getattr(self.under, name)

    def write(self, text: str) -> int:
        """Write a text; returns its length."""
        if _UNSEEN.search(text):
            if self.under.isatty():
                pieces = _STEERING.split(text)
                text = "".join(each if n % 2 else cleaned(each) for n, each in enumerate(pieces))
            else:
                text = cleaned(_RETURNS.sub("\n", _COLOURS.sub("", text)))
        return self.under.write(text)

    def close(self) -> None:
        """Leave it open: others print to it too."""

    def writelines(self, lines: Iterable[str]) -> None:
        """Write texts."""
        for line in lines:
            self.write(line)


def clean_streams() -> None:
    """Clean all that this process prints from here on, and escape what the locale cannot hold."""
    codecs.register_error("cse", _escape_unencodable)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and not isinstance(stream, CleanStream):
            with suppress(AttributeError, OSError, ValueError):
                stream.reconfigure(errors="cse")
            setattr(sys, name, CleanStream(stream))


def sanitize_terminal() -> None:
    """Forget widths and heights of the terminal that are none, so that its own are taken."""
    for name in ("COLUMNS", "LINES", "TERMINAL_WIDTH"):
        if not re.fullmatch("[1-9][0-9]{1,3}", os.environ.get(name, "80")):
            del os.environ[name]


def _put(text: str, *, err: bool = False, label: str = "", colour: str = "") -> None:
    """Print a line, with a label in front in colour on a terminal."""
    stream = sys.stderr if err else sys.stdout
    if stream is None:  # it was closed before the command began
        return
    if label:
        plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        if colour and stream.isatty() and not plain:
            label = f"\x1b[1;{colour}m{label}\x1b[0m"
        label += " "
    under = stream.under if isinstance(stream, CleanStream) else stream
    under.write(f"{label}{cleaned(text)}\n")
    under.flush()


def echo(text: str = "") -> None:
    """Print a line of the result on stdout."""
    _put(text)


def echo_err(text: str) -> None:
    """Print a line for the reader on stderr, where it is in nobody's way."""
    _put(text, err=True)


def warn(text: str) -> None:
    """Print a warning on stderr."""
    _put(text, err=True, label="warning:", colour="33")


def fail(error: CseError) -> None:
    """Print an error on stderr, a line for each mistake."""
    mistakes = error.errors if isinstance(error, CseErrors) else (error,)
    for mistake in mistakes:
        _put(mistake.line(), err=True, label="error:", colour="31")


def say_json(value: Any) -> None:
    """Print a value as JSON on stdout, lists of numbers each in one line."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    echo(_NUMBERS.sub(lambda found: " ".join(found[0].split()), text))


def say_table(table: Table) -> None:
    """Print a table on stdout, as wide as the terminal, or wide where there is none."""
    console().print(table)


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
                steers = segment.control is not None
                yield segment if steers else segment._replace(text=cleaned(segment.text))

    stream = sys.stderr if err else sys.stdout
    if in_notebook():
        return CleanConsole(highlight=False, markup=False, emoji=False)
    under: Any = stream.under if isinstance(stream, CleanStream) else stream
    shown = under is not None and under.isatty()
    return CleanConsole(
        file=under,
        width=None if shown else _WIDE,
        force_terminal=None if shown else False,
        highlight=False,
        markup=False,
        emoji=False,
    )


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


def _escape_unencodable(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    return _escaped(error.object[error.start : error.end]), error.end
