"""What a paper prints: the tables of ``paper.tsv``, which lies beside the studies of a paper.

A blank line ends a table. Its first line has ``Table 1 | bert-base-uncased``, the place in the
paper and the encoder or corpus, and then the names of the columns, those of scores where cse has
the score. Every other line has the label of a row, that of a study's point where a study has it,
and a cell for each column: as printed, with a deviation behind ``±``, ``-`` where nothing is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from cse_core.errors import CseError

FILE = "paper.tsv"
"""Name of the file beside the studies of a paper."""
NOTHING = "-"
"""A cell in which the paper prints nothing."""
Numbers = Sequence[float | None]
_NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")


class Cell(NamedTuple):
    """A printed cell; what is not a number, such as ``38K``, is text alone."""

    text: str
    value: float | None = None
    deviation: float | None = None

    @classmethod
    def of(cls, text: str, scale: float = 1.0) -> Cell:
        """Read a cell; its numbers are multiplied by ``scale``."""
        numbers = [
            float(part.replace(",", "")) * scale if _NUMBER.fullmatch(part) else None
            for part in text.split("±")
        ]
        return cls(text, numbers[0], numbers[1] if len(numbers) > 1 else None)


@dataclass(frozen=True)
class Printed:
    """One table of a paper, or its part of one encoder or corpus.

    Attributes:
        place: Where it stands: ``Table 1``.
        block: The encoder, the corpus, or ``text`` of statements outside tables.
        columns: Names of its columns.
        rows: The cells of each row that the paper prints, by column, by the row's label.
    """

    place: str
    block: str
    columns: tuple[str, ...]
    rows: Mapping[str, Mapping[str, Cell]]

    @property
    def cells(self) -> list[Cell]:
        """Return all its cells."""
        return [cell for row in self.rows.values() for cell in row.values()]

    def cell(self, row: str, column: str) -> Cell | None:
        """Return a cell, None where the paper prints none."""
        return self.rows.get(row, {}).get(column)

    def scaled(self, scale: float) -> Printed:
        """Return the table with its numbers multiplied, as shares are to percentages."""
        rows = {
            label: {name: Cell.of(cell.text, scale) for name, cell in row.items()}
            for label, row in self.rows.items()
        }
        return Printed(self.place, self.block, self.columns, rows)


@cache
def read_printed(file: Path) -> tuple[Printed, ...]:
    """Read the tables of a paper.

    Raises:
        CseError: A table has no place, or a line of it has more or fewer cells than its first.
    """
    try:
        lines = enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
    except UnicodeDecodeError as error:
        what = f"is not UTF-8: {error.reason} at byte {error.start:,}"
        raise CseError(what, where=str(file), hint="save it as UTF-8") from None
    filled = groupby(lines, key=lambda line: bool(line[1].strip()))
    return tuple(_table(list(part), file) for is_table, part in filled if is_table)


def _table(lines: Sequence[tuple[int, str]], file: Path) -> Printed:
    (at, first), *others = lines
    head, *columns = first.split("\t")
    place, bar, block = head.partition(" | ")
    if not (bar and columns):
        hint = "a table begins with PLACE | BLOCK, and columns after tabs"
        raise CseError("no head of a table", where=f"{file}, line {at}", value=first, hint=hint)
    rows: dict[str, Mapping[str, Cell]] = {}
    for number, line in others:
        label, *texts = line.split("\t")
        if len(texts) != len(columns) or label in rows:
            what = f"row {label!r} is there twice"
            if label not in rows:
                what = f"{len(texts)} cells for {len(columns)} columns"
            raise CseError(what, where=f"{file}, line {number}")
        cells = zip(columns, texts, strict=True)
        rows[label] = {name: Cell.of(text) for name, text in cells if text != NOTHING}
    return Printed(place, block, tuple(columns), rows)


def listed(
    place: str, block: str, rows: Sequence[str], columns: Mapping[str, tuple[Numbers, Numbers]]
) -> Printed:
    """Return numbers as a table: for each column those of all rows, and their deviations."""
    cells: dict[str, dict[str, Cell]] = {row: {} for row in rows}
    for column, (values, deviations) in columns.items():
        for row, value, deviation in zip(rows, values, deviations, strict=True):
            if value is not None:
                cells[row][column] = Cell(f"{value:g}", value, deviation)
    return Printed(place, block, tuple(columns), cells)
