"""Sentences and lists that a command or a function returned, as tables of a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cse_study.definition.schema import Figure
from cse_study.pages.drawing import plain_number
from cse_study.pages.study_results import Results
from cse_study.results.rows import at
from cse_study.results.text_table import Table

_ROWS = 60
"""Rows of a table at most."""


def text_tables(results: Results, figure: Figure) -> list[Table]:
    """Return a table of each list that a figure shows, of the first seed of each point.

    Its key ``show`` has the lists' paths in the output, with dots; one that an output does not
    have is left out.
    """
    found = []
    for point in results.points:
        for row in results.of_point(point)[:1]:
            for path in (figure.model_extra or {}).get("show", []):
                value = at(row.results, path)
                if isinstance(value, list) and value:
                    words = f"{point.label}: {path}" if point.labels else path
                    found.append(_table(value, words))
    return found


def _table(values: list[Any], words: str) -> Table:
    """Return a list as a table: numbered from 0, as other lists name its items."""
    shown = values[:_ROWS]
    if len(values) > _ROWS:
        words += f", {_ROWS} of {len(values)}"
    if isinstance(shown[0], Mapping):
        heads = list(dict.fromkeys(name for each in shown for name in each))
        rows = [[str(at), *(_text(each.get(name)) for name in heads)]
                for at, each in enumerate(shown)]  # fmt: skip
        return Table(["", *heads], rows, words)
    return Table(["", ""], [[str(at), _text(each)] for at, each in enumerate(shown)], words)


def _text(value: Any, inner: bool = False) -> str:
    """Return a value as a text; items of a list are separated, those of lists in it by commas."""
    if isinstance(value, list):
        return (", " if inner else "; ").join(_text(each, inner=True) for each in value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return plain_number(value)
    return "-" if value is None else str(value)
