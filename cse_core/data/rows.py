"""From a file's raw columns to usable rows: trimmed, without blanks, joined to documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cse_core.data.columns import PAIR_COLUMNS
from cse_core.data.tables import Reading, text_table
from cse_core.errors import CseError

if TYPE_CHECKING:
    import pyarrow as pa

UNJOINABLE = ("positive", "negative")
"""Columns that belong to a sentence and mean nothing for a whole document."""
FILLED = ("document", "title")
"""Columns that rows may lack: those of no document, and those of a file without the column."""


def complete_rows(table: pa.Table) -> int:
    """Count the rows without a blank in any column: at least so many are usable."""
    import pyarrow as pa
    import pyarrow.compute as pc

    filled: Any = pa.scalar(True)
    for column in table.columns:
        text = pc.utf8_trim_whitespace(pc.fill_null(column, ""))
        filled = pc.and_(filled, pc.not_equal(text, ""))
    return int(pc.sum(filled).as_py() or 0) if table.columns else 0


def clean_rows(
    table: pa.Table,
    reading: Reading,
    *,
    required: Sequence[str],
    encoded: Sequence[str],
    limit: int | None,
) -> pa.Table:
    """Trim every column and drop rows without text.

    A row whose positive, negative or fraternal text is blank is dropped too. Where the run requires
    a column, whichever it is, a blank in it is an error: a blank text would be trained on as if it
    were one. Document and title alone may have gaps, unless a view encodes them. A column of pairs
    that is blank in every row is left out.

    ``table`` has columns of strings by the core's names, ``text`` among them. After ``limit``
    usable rows it stops, and what comes after is not counted. No null is left.

    Raises:
        CseError: A value holds a NUL byte, or a required column is blank in some row.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = {
        name: pc.utf8_trim_whitespace(pc.fill_null(table.column(name), ""))
        for name in table.column_names
    }
    for name, column in columns.items():
        found = pc.match_substring(column, "\0")
        if pc.any(found).as_py():
            raise CseError(
                f"column {name} contains a NUL byte, so it is not text",
                where=f"{reading.name}, row {pc.index(found, True).as_py() + 1}",
                hint="remove it or the row",
            )
    has_text = pc.not_equal(columns["text"], "").to_numpy()
    usable = has_text.copy()
    for name in [name for name in columns if name != "text"]:
        filled = pc.not_equal(columns[name], "").to_numpy()
        gaps = np.flatnonzero(has_text & ~filled)
        every = len(gaps) == has_text.sum()
        may_lack = name in FILLED and name not in encoded and not every
        if name in required and len(gaps) and not may_lack:
            raise CseError(
                f"column {name} is blank in {len(gaps)} of {len(filled)} rows, "
                f"first in row {gaps[0] + 1}, and a part of this run requires it",
                where=reading.name,
                hint="fill or remove these rows",
            )
        if name in PAIR_COLUMNS and len(gaps) and every:
            del columns[name]
            reading.say(f"column {name} is blank in every row, so it is ignored")
        elif name in PAIR_COLUMNS:
            usable &= filled
    end = len(usable)
    if limit is not None:
        kept = np.flatnonzero(usable)[:limit]
        end = int(kept[-1]) + 1 if len(kept) == limit else end
    blank = int((~has_text[:end]).sum())
    incomplete = int((has_text[:end] & ~usable[:end]).sum())
    if incomplete:
        names = ", ".join(name for name in PAIR_COLUMNS if name in columns)
        reading.say(f"{incomplete} rows dropped: {names} blank")
    reading.blank += blank
    reading.incomplete += incomplete
    rows = pa.table(columns).slice(0, end)
    if blank or incomplete:
        rows = rows.filter(pa.array(usable[:end]))
    return rows


def join_documents(table: pa.Table, reading: Reading) -> pa.Table:
    """Join the rows of each document in their order; rows of no document stay as they are.

    ``text`` and ``fraternal`` are joined by a space; another column is kept where it is the same
    in all rows of each document; ``positive`` and ``negative`` are left out. Documents stand by
    first appearance.
    """
    columns = {name: table.column(name).to_pylist() for name in table.column_names}
    groups: dict[object, list[int]] = {}
    for row, document in enumerate(columns["document"]):
        groups.setdefault(document or row, []).append(row)
    joined: dict[str, Sequence[str]] = {}
    left_out: list[str] = []
    for name, values in columns.items():
        if name in ("text", "fraternal"):
            joined[name] = [" ".join(values[row] for row in rows) for rows in groups.values()]
        elif name not in UNJOINABLE and (
            name == "title" or all(len({values[r] for r in rows}) == 1 for rows in groups.values())
        ):
            joined[name] = [values[rows[0]] for rows in groups.values()]
        else:
            left_out.append(name)
    if left_out:
        reading.say(f"columns ignored, because each row is a document: {', '.join(left_out)}")
    return text_table(joined)
