"""Load the training texts that ``data.*`` names, or look at their columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cse_core.data.columns import ColumnMatch, listed, match_columns, ordered
from cse_core.data.corpus import Corpus, FileReport, LoadReport, document_numbers
from cse_core.data.rows import FILLED, UNJOINABLE, clean_rows, complete_rows, join_documents
from cse_core.data.sources import Source, find_source
from cse_core.data.tables import Reading
from cse_core.errors import CseError
from cse_core.records import DatasetSpec

if TYPE_CHECKING:
    from cse_core.recipes.settings import DataOptions


def load_corpus(
    options: DataOptions,
    *,
    datasets: Mapping[str, DatasetSpec],
    required_columns: Sequence[str] = (),
    encoded_columns: Sequence[str] = (),
) -> Corpus:
    """Load the training rows of a run.

    Files follow one another in the order of ``data.path``. A column that not every file has is
    left out, with a message; document and title are blank instead. Nothing is written, but for the
    cache of the hub's own library.

    Args:
        options: ``data.*``.
        datasets: The installed data sets by name.
        required_columns: Columns that parts of the run require.
        encoded_columns: Those of them whose texts views encode: they have no gaps.

    Raises:
        CseError: A name stands for nothing, a file cannot be read (with the line), it has no text,
            lacks a required column or has blanks in it, or no row is left.
    """
    import pyarrow as pa

    sources = _sources(options, datasets)
    raw_tables: list[Any] = []
    reports: list[FileReport] = []
    matches: list[ColumnMatch] = []
    twice = sorted({name for name in options.path if options.path.count(name) > 1})
    messages = [f"{name}: named twice, so its rows come twice" for name in twice]
    left = options.limit
    for source in sources:
        if left == 0:
            messages.append(f"{source.name}: not read, data.limit is reached before it")
            continue
        table, report, match, notes = _load_source(
            source, options, required_columns, encoded_columns, left
        )
        raw_tables.append(table)
        reports.append(report)
        matches.append(match)
        messages.extend(notes)
        if left is not None:
            left -= report.rows
    if len(reports) == len(sources):
        _check_mapping(options, matches)
    names, dropped = _common_columns(
        [(report.name, report.columns) for report in reports], required_columns
    )
    messages.extend(dropped)
    if made_up := ", ".join(source.name for source in sources if source.synthetic):
        messages.append(f"{made_up}: synthetic texts, made up to try things; no benchmark")
    tables = []
    for table in raw_tables:
        blank = pa.array([""] * table.num_rows, pa.string())
        has = table.column_names
        tables.append(pa.table({n: table.column(n) if n in has else blank for n in names}))
    return Corpus(
        pa.concat_tables(tables).combine_chunks(),
        _documents(tables) if "document" in names else None,
        LoadReport(tuple(reports), bool(made_up), tuple(messages)),
    )


def peek_columns(
    options: DataOptions, *, datasets: Mapping[str, DatasetSpec]
) -> tuple[str, ...] | None:
    """Look at the beginnings of the files for the columns that the data will have.

    Returns:
        The columns, or None where only loading can tell (a data set of the hub).

    Raises:
        CseError: As ``load_corpus``, as far as the beginning of each file shows it.
    """
    found: list[tuple[str, tuple[str, ...]]] = []
    matches: list[ColumnMatch] = []
    for source in _sources(options, datasets):
        reading = Reading.peek()
        names = source.columns(options.unit, reading)
        if names is None:
            return None
        matches.append(_match(source, names, options, reading))
        columns = tuple(matches[-1].sources)
        if options.unit == "document" and "document" in columns and not reading.articles:
            columns = tuple(name for name in columns if name not in UNJOINABLE)
        found.append((source.name, columns))
    _check_mapping(options, matches)
    return _common_columns(found, ())[0]


def _sources(options: DataOptions, datasets: Mapping[str, DatasetSpec]) -> list[Source]:
    if not options.path:
        raise CseError("no training texts", where="data.path", hint="name a file: --data FILE")
    return [find_source(name, datasets) for name in options.path]


def _load_source(
    source: Source,
    options: DataOptions,
    required: Sequence[str],
    encoded: Sequence[str],
    limit: int | None,
) -> tuple[Any, FileReport, ColumnMatch, list[str]]:
    """Return a source's rows, its report, its columns and messages."""
    import pyarrow as pa

    reading = Reading()
    tables: list[Any] = []
    complete = 0
    for table in source.tables(options.unit, reading):
        tables.append(table)
        if limit is not None and options.unit != "document":
            complete += complete_rows(table)
            if complete >= limit:
                break
    raw = pa.concat_tables(tables, promote_options="default") if tables else pa.table({})
    match = _match(source, tuple(raw.column_names), options, reading)
    messages = [
        *match.messages,
        *(
            f"{source.name}: column {name} is left out, it holds {what}"
            for name, what in reading.left_out.items()
        ),
    ]
    raw = pa.table({name: raw.column(old) for name, old in match.sources.items()})
    join = options.unit == "document" and not reading.articles and "document" in match.sources
    table, dropped, incomplete, notes = clean_rows(
        raw,
        where=source.name,
        required=required,
        encoded=encoded,
        limit=None if join else limit,
    )
    messages.extend(notes)
    if join:
        table, notes = join_documents(table, where=source.name)
        table = table.slice(0, limit)
        messages.extend(notes)
    elif options.unit != "sentence" and not reading.articles:
        messages.append(f"{source.name}: no {options.unit}s are marked in it; a row stays a row")
    if not table.num_rows:
        raise _no_rows(source, incomplete)
    blank = dropped + reading.blank
    if blank:
        messages.append(f"{source.name}: {blank} blank lines dropped")
    report = FileReport(source.name, table.num_rows, blank, incomplete, tuple(table.column_names))
    return table, report, match, messages


def _match(
    source: Source, names: tuple[str, ...], options: DataOptions, reading: Reading
) -> ColumnMatch:
    if not names and not reading.left_out:
        raise _no_rows(source, 0)
    if not names:
        held = ", ".join(f"{name} holds {what}" for name, what in reading.left_out.items())
        raise CseError(
            f"no column of texts: {held}",
            where=source.name,
            hint='a text stands alone: {"text": "…"}',
        )
    headless = source.file is not None and source.file.format == "txt"
    mapping = {} if headless else options.columns
    return match_columns(names, mapping, where=source.name, from_header=reading.from_header)


def _no_rows(source: Source, incomplete: int) -> CseError:
    what = (
        "no row is complete, each lacks a positive, negative or fraternal text"
        if incomplete
        else "no text in it, only blank lines or a header"
    )
    return CseError(what, where=source.name, hint="name a file with texts")


def _check_mapping(options: DataOptions, matches: Sequence[ColumnMatch]) -> None:
    """Refuse a column of ``data.columns`` that no file has."""
    for target, source in options.columns.items():
        if not any(match.sources.get(target) == source for match in matches):
            there = dict.fromkeys(name for match in matches for name in match.sources.values())
            raise CseError(
                f"no file has a column {source}",
                where=f"data.columns.{target}",
                hint=f"the columns there are: {listed(list(there))}",
            )


def _common_columns(
    files: Sequence[tuple[str, Sequence[str]]], required: Sequence[str]
) -> tuple[tuple[str, ...], list[str]]:
    """Return the columns of all files together, and a message for each that is left out."""
    names = ordered({name: name for _, columns in files for name in columns})
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
            messages.append(f"column {name} is left out: {lacking[0]} has none")
    return tuple(kept), messages


def _documents(tables: Sequence[Any]) -> Any:
    """Number the documents of all files; one id in two files is two documents."""
    import numpy as np

    numbers, start = [], 0
    for table in tables:
        own = document_numbers(table)
        numbers.append(np.where(own < 0, -1, own + start))
        start += int(own.max(initial=-1)) + 1
    return np.concatenate(numbers)
