"""Texts in Markdown: what a file, a user or a plugin brings is shown and never read as markup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from cse_core.errors import visible

_MARKUP = re.compile(
    r"[\\`<|*~$]|(?<=\])[(\[]|(?<!\w)_|_(?!\w)|^[#>]|^[+-](?=\s)"  # a link is what "](" makes
)


def plain(text: str) -> str:
    """Return a text in one line that Markdown shows as it is."""
    return _MARKUP.sub(r"\\\g<0>", visible(text))


def code(text: str) -> str:
    """Return a text as inline code, which a table may hold."""
    return f"`{visible(text).replace('`', '')}`"


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; its cells are Markdown, in which a ``|`` that is not escaped becomes so."""
    lines = [heads, ["---"] * len(heads), *rows]
    cells = [[re.sub(r"(?<!\\)\|", r"\\|", visible(cell)) for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)
