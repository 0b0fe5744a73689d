"""Tables of text, and numbers as text: the terminal, Markdown and HTML show the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """A table of text; its first column names the rows.

    Attributes:
        caption: What its columns are, in a line or two.
        title: What is in it; empty where that is said elsewhere.
    """

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    title: str = ""

    def markdown(self) -> str:
        """Return it as a table of Markdown."""
        lines = [self.heads, ["---"] * len(self.heads), *self.rows]
        return "\n".join(
            "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines
        )


def plain_number(value: object) -> str:
    """Return a number with as many digits as can be read."""
    if value is None:
        return "-"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int) or (abs(value) >= 1e4 and value == int(value)):
        return f"{int(value):,}"
    return f"{value:.2f}" if 1 <= abs(value) < 1e4 else f"{value:.4g}"
