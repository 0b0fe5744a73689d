"""Load the training texts that ``data.*`` names: trimmed, without blanks, joined to documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cse_core.data.columns import listed, match_columns, ordered, read_values
from cse_core.data.corpus import Corpus, FileReport, LoadReport, document_numbers
from cse_core.data.sources import Source, find_source
from cse_core.data.tables import Reading, text_table
from cse_core.errors import CseError
from cse_core.recipes.settings import NO_COLUMNS, NeededColumns
from cse_core.records import CORE_VIEWS, DatasetSpec, ViewSpec

if TYPE_CHECKING:
    import pyarrow as pa

    from cse_core.recipes.settings import DataOptions
    from cse_core.registry.registry import Registry


FILLED = ("document", "title")
"""Columns that rows may lack: those of no document, and those of a file without the column."""


def load_corpus(
    options: DataOptions,
    registry: Registry | None = None,
    needed: NeededColumns = NO_COLUMNS,
) -> Corpus:
    """Load the training rows of a run.

    Files follow one another in the order of ``data.path``. A column that not every file has is
    left out, with a message; document and title are blank instead. Nothing is written, but for the
    cache of the hub's own library.

    ``registry`` has the installed data sets and views, ``needed`` what a run reads.

    Raises:
        CseError: A name stands for nothing, a file cannot be read (with the line), it has no text,
            lacks a required column, has blanks or a wrong number in it, or no row is left.
    """
    import pyarrow as pa

    sources, views = _sources(options, registry)
    readings: list[Reading] = []
    tables: list[pa.Table] = []
    twice = sorted({name for name in options.path if options.path.count(name) > 1})
    messages = [f"{name}: given twice, so its rows are used twice" for name in twice]
    left = options.limit
    for source in sources:
        if left == 0:
            messages.append(f"{source.name}: not read, because data.limit is reached first")
            continue
        reading = Reading(source.name, views=views)
        tables.append(_rows(source, reading, options, needed, left))
        readings.append(reading)
        messages.extend(reading.messages)
        if left is not None:
            left -= len(tables[-1])
    if len(readings) == len(sources):
        _check_mapping(options, readings)
    reports = tuple(
        FileReport(each.name, len(table), each.blank, each.incomplete, tuple(table.column_names))
        for each, table in zip(readings, tables, strict=True)
    )
    files = [(report.name, report.columns) for report in reports]
    names, dropped = _common_columns(files, needed.required, views)
    messages.extend(dropped)
    if made_up := ", ".join(source.name for source in sources if source.synthetic):
        messages.append(f"{made_up}: synthetic texts, made up to try things; no benchmark")
    commits = {reading.name: reading.commit for reading in readings if reading.commit}
    for number, table in enumerate(tables):
        blank = pa.array([""] * len(table), pa.string())
        has = table.column_names
        tables[number] = pa.table({n: table.column(n) if n in has else blank for n in names})
    return Corpus(
        pa.concat_tables(tables).combine_chunks(),
        document_numbers(tables) if "document" in names else None,
        LoadReport(reports, bool(made_up), tuple(messages), commits),
    )


def peek_columns(options: DataOptions, registry: Registry | None = None) -> tuple[str, ...] | None:
    """Look at the beginnings of the files for the columns that the data will have.

    Returns:
        The columns, or None where only loading can tell (a data set of the hub).

    Raises:
        CseError: As ``load_corpus``, as far as the beginning of each file shows it.
    """
    readings: list[Reading] = []
    found: list[tuple[str, list[str]]] = []
    sources, views = _sources(options, registry)
    for source in sources:
        if source.hub is not None:
            return None
        reading = Reading(source.name, batch=100, views=views)
        first = next(source.tables(options.unit, reading), None)
        _match(source, first.column_names if first is not None else [], options, reading)
        left_out = _unjoinable(reading) if _joins(options, reading) else ()
        found.append((source.name, [name for name in reading.columns if name not in left_out]))
        readings.append(reading)
    _check_mapping(options, readings)
    return _common_columns(found, (), views)[0]


def _sources(
    options: DataOptions, registry: Registry | None
) -> tuple[list[Source], tuple[ViewSpec, ...]]:
    """Return what the names of the data stand for, and the views whose columns it may have."""
    if not options.path:
        raise CseError("no training texts", where="data.path", hint="name a file: --data FILE")
    datasets: dict[str, DatasetSpec] = {}
    views: Sequence[ViewSpec] = CORE_VIEWS
    if registry is not None:
        datasets = {found.name: found.spec for found in registry.datasets()}
        views = tuple(registry.views.values())
    return [find_source(name, datasets) for name in options.path], tuple(views)


def _rows(
    source: Source,
    reading: Reading,
    options: DataOptions,
    needed: NeededColumns,
    limit: int | None,
) -> pa.Table:
    """Return the usable rows of a source."""
    import pyarrow as pa

    parts: list[pa.Table] = []
    complete = 0
    for part in source.tables(options.unit, reading):
        parts.append(part)
        if limit is not None and options.unit != "document":
            complete += complete_rows(part)
            if complete >= limit:
                break
    raw = pa.concat_tables(parts, promote_options="default") if parts else pa.table({})
    _match(source, raw.column_names, options, reading)
    for name, what in reading.left_out.items():
        reading.say(f"column {name} is ignored: it holds {what}")
    for name in ("text", *needed.required):
        if place := reading.lacking.get(reading.columns.get(name, "")):
            if name not in FILLED:
                what = f"no {reading.columns[name]!r}, which other rows have"
                hint = "add it (null drops the row), or remove the row"
                raise CseError(what, where=place, hint=hint)
    table = pa.table({name: raw.column(old) for name, old in reading.columns.items()})
    joins = _joins(options, reading)
    kept = None if joins else limit
    table = clean_rows(table, reading, needed, kept)
    if joins:
        table = join_documents(table, reading).slice(0, limit)
    elif options.unit != "sentence" and not reading.articles:
        reading.say(f"it marks no {options.unit}s, so each row stays as it is")
    if not len(table):
        raise _no_rows(reading)
    if reading.blank:
        reading.say(f"{reading.blank} blank lines dropped")
    return table


def _joins(options: DataOptions, reading: Reading) -> bool:
    """Tell whether rows are joined to documents; articles are unfolded into them."""
    return options.unit == "document" and not reading.articles and "document" in reading.columns


def _unjoinable(reading: Reading) -> list[str]:
    """Return the columns that mean nothing for a whole document; its text is that of all rows."""
    roles = ("positive", "negative")
    return [v.column for v in reading.views if v.role in roles and v.column != "text"]


def _match(source: Source, names: Sequence[str], options: DataOptions, reading: Reading) -> None:
    """Find the core's columns among those of a source."""
    if not names and not reading.left_out:
        raise _no_rows(reading)
    if not names:
        held = ", ".join(f"{name} holds {what}" for name, what in reading.left_out.items())
        hint = 'write each text as a string: {"text": "…"}'
        raise CseError(f"no column of texts: {held}", where=source.name, hint=hint)
    headless = source.file is not None and source.file.format == "txt"
    reading.columns = match_columns(names, {} if headless else options.columns, reading)


def _no_rows(reading: Reading) -> CseError:
    what = (
        f"no row is complete: each lacks {' or '.join(reading.encoded)}"
        if reading.incomplete
        else "contains no text, only blank lines or a header"
    )
    return CseError(what, where=reading.name, hint="name a file with texts")


def _check_mapping(options: DataOptions, readings: Sequence[Reading]) -> None:
    """Refuse a column of ``data.columns`` that no file has."""
    for target, source in options.columns.items():
        if not any(reading.columns.get(target) == source for reading in readings):
            there = dict.fromkeys(name for each in readings for name in each.columns.values())
            what = f"no file has a column {source}"
            hint = f"the columns are: {listed(list(there))}"
            raise CseError(what, where=f"data.columns.{target}", hint=hint)


def _common_columns(
    files: Sequence[tuple[str, Sequence[str]]],
    required: Sequence[str],
    views: Sequence[ViewSpec],
) -> tuple[tuple[str, ...], list[str]]:
    """Return the columns of all files together, and a message for each that is left out."""
    names = ordered({name: name for _, columns in files for name in columns}, views)
    for name in required:
        names.setdefault(name, name)
    kept: list[str] = []
    messages: list[str] = []
    for name in names:
        lacking = next((file for file in files if name not in file[1]), None)
        if lacking is None or (name in FILLED and name not in required):
            kept.append(name)
        elif name in required:
            raise CseError(
                f"no column {name}, which a part of this run requires",
                where=lacking[0],
                hint=f"its columns: {listed(lacking[1])}; say which one it is with "
                f"--set data.columns.{name}=NAME, or name other data",
            )
        else:
            messages.append(f"column {name} is ignored: {lacking[0]} does not have it")
    return tuple(kept), messages


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
    needed: NeededColumns = NO_COLUMNS,
    limit: int | None = None,
) -> pa.Table:
    """Trim every column and drop rows without text.

    A row that lacks another text to encode is dropped too. Where the run requires
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
        may_lack = name in FILLED and name not in needed.encoded and not every
        if name in needed.required and len(gaps) and not may_lack:
            raise CseError(
                f"column {name} is blank in {len(gaps)} of {len(filled)} rows, "
                f"first in row {gaps[0] + 1}, and a part of this run requires it",
                where=reading.name,
                hint="fill or remove these rows",
            )
        if (kind := needed.types.get(name, "text")) != "text":
            texts = columns[name].filter(pa.array(has_text))
            there = np.flatnonzero(has_text).tolist()
            read_values(texts.to_pylist(), kind, column=name, where=reading.name, rows=there)
        if name in reading.encoded and len(gaps) and every:
            del columns[name]
            reading.say(f"column {name} is blank in every row, so it is ignored")
        elif name in reading.encoded:
            usable &= filled
    end = len(usable)
    if limit is not None:
        kept = np.flatnonzero(usable)[:limit]
        end = int(kept[-1]) + 1 if len(kept) == limit else end
    blank = int((~has_text[:end]).sum())
    incomplete = int((has_text[:end] & ~usable[:end]).sum())
    if incomplete:
        names = ", ".join(name for name in reading.encoded if name in columns)
        reading.say(f"{incomplete} rows dropped: {names} blank")
    reading.blank += blank
    reading.incomplete += incomplete
    rows = pa.table(columns).slice(0, end)
    if blank or incomplete:
        rows = rows.filter(pa.array(usable[:end]))
    return rows


def join_documents(table: pa.Table, reading: Reading) -> pa.Table:
    """Join the rows of each document in their order; rows of no document stay as they are.

    ``text`` and the columns of auxiliary views are joined by a space; another column is kept where
    it is the same in all rows of each document; those of positives and negatives, which belong to
    a sentence, are left out. Documents stand by first appearance.
    """
    unjoinable = _unjoinable(reading)
    columns = {name: table.column(name).to_pylist() for name in table.column_names}
    groups: dict[object, list[int]] = {}
    for row, document in enumerate(columns["document"]):
        groups.setdefault(document or row, []).append(row)
    joined: dict[str, Sequence[str]] = {}
    left_out: list[str] = []
    for name, values in columns.items():
        if name == "text" or (name in reading.encoded and name not in unjoinable):
            joined[name] = [" ".join(values[row] for row in rows) for rows in groups.values()]
        elif name not in unjoinable and (
            name == "title" or all(len({values[r] for r in rows}) == 1 for rows in groups.values())
        ):
            joined[name] = [values[rows[0]] for rows in groups.values()]
        else:
            left_out.append(name)
    if left_out:
        reading.say(f"columns ignored, because each row is a document: {', '.join(left_out)}")
    return text_table(joined)
