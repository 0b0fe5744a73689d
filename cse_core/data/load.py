"""Read the training texts that ``data.*`` names, and take the rows that a run can use."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from cse_core.data.columns import (
    ColumnKind,
    gathered,
    is_lists,
    is_prose,
    kind_of,
    listed,
    match_columns,
    ordered,
    read_values,
)
from cse_core.data.corpus import Corpus, FileReport, LoadReport, document_numbers
from cse_core.data.sources import Source, find_source
from cse_core.data.tables import Reading, join_tables
from cse_core.errors import CseError
from cse_core.recipes.settings import FILLED, NO_COLUMNS, DataOptions, NeededColumns
from cse_core.records import CORE_VIEWS, DatasetSpec, ViewSpec

if TYPE_CHECKING:
    import pyarrow as pa

    from cse_core.registry.registry import Registry

_SAMPLE = 1000
"""Values of a column that tell what it holds."""


@dataclass
class Data:
    """What ``data.*`` names, read: every row and every column, whatever a run takes of them.

    Attributes:
        options: What was read.
        parts: The rows of each source, in the order of ``data.path``.
        messages: What a user should know, a line each.
        made_up: Names of the sources whose texts are made up.
        installed: Names of data sets that plugins bring.
        views: The views that there are.
    """

    options: DataOptions
    parts: list[Reading]
    messages: list[str]
    made_up: str
    installed: Collection[str]
    views: Sequence[ViewSpec] = CORE_VIEWS
    _made: dict[str, Corpus] = field(default_factory=dict, repr=False)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Return the columns that some source has, ``text`` first."""
        names = {name: name for part in self.parts for name in part.table.column_names}
        return tuple(ordered(names, self.views))

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """Return the columns of files that hold texts of more than a word, as a sample shows."""
        return tuple(
            name
            for name in self.columns
            if any(
                name in part.table.column_names
                and is_prose(values := sample(part.table.column(name)))
                and kind_of(values) == "text"
                for part in self.parts
                if part.name not in self.installed
            )
        )

    def corpus(self, needed: NeededColumns = NO_COLUMNS) -> Corpus:
        """Return the rows that have a text in ``text`` and in every column that a run needs.

        Lists of texts that it needs become rows: as many as the longest list of a row is long;
        a shorter one begins again. A column that no row of a source has is blank there.

        Raises:
            CseError: A needed column is missing or holds a wrong value, no row is left, or rows
                lack a text and ``data.blank`` says to refuse them.
        """
        key = repr(needed)
        if key not in self._made:
            self._made[key] = self._corpus(needed)
        return self._made[key]

    def _corpus(self, needed: NeededColumns) -> Corpus:
        import pyarrow as pa

        messages: list[str] = []
        files, tables = [], []
        for part in self.parts:
            table, file = _usable(part, needed, self.options, messages)
            tables.append(table)
            files.append(file)
        names = ordered({name: name for table in tables for name in table.column_names}, self.views)
        for number, table in enumerate(tables):
            blank = pa.array([""] * len(table), pa.string())
            has = table.column_names
            tables[number] = pa.table({n: table.column(n) if n in has else blank for n in names})
        return Corpus(
            pa.concat_tables(tables).combine_chunks(),
            document_numbers(tables) if "document" in names else None,
            LoadReport(
                tuple(files),
                self.made_up,
                (*self.messages, *messages),
                {part.name: part.commit for part in self.parts if part.commit},
            ),
        )


def load_corpus(
    options: DataOptions,
    registry: Registry | None = None,
    needed: NeededColumns = NO_COLUMNS,
) -> Corpus:
    """Return the rows of ``read_data`` that a run can use, and raise what these raise."""
    return read_data(options, registry).corpus(needed)


def read_data(
    options: DataOptions, registry: Registry | None = None, *, exact: bool = False
) -> Data:
    """Read all rows that ``data.path`` names, up to ``data.limit``.

    Nothing is written, but for the cache of the hub's own library. ``registry`` has the installed
    data sets and views; ``exact`` is as in :class:`Reading`.

    Raises:
        CseError: A name stands for nothing, a file cannot be read (with the line), or it has no
            text.
    """
    if not options.path:
        raise CseError("no training texts", where="data.path", hint="name a file: --data FILE")
    datasets: dict[str, DatasetSpec] = {}
    views: Sequence[ViewSpec] = CORE_VIEWS
    if registry is not None:
        datasets = {found.name: found.spec for found in registry.datasets()}
        views = tuple(registry.views.values())
    twice = sorted({name for name in options.path if options.path.count(name) > 1})
    messages = [f"{name}: given twice, so its rows are used twice" for name in twice]
    parts: list[Reading] = []
    left = options.limit
    sources = [find_source(name, datasets) for name in options.path]
    for source in sources:
        if left == 0:
            messages.append(f"{source.name}: not read, because data.limit is reached first")
            continue
        reading = Reading(source.name, left, exact or options.blank == "refuse")
        _read(source, reading, options, views)
        parts.append(reading)
        messages += reading.messages
        if left is not None:
            left -= len(parts[-1].table)
    if len(parts) == len(options.path):
        _check_mapping(options, parts)
    made_up = ", ".join(source.name for source in sources if source.synthetic)
    return Data(options, parts, messages, made_up, datasets, views)


def _read(
    source: Source, reading: Reading, options: DataOptions, views: Sequence[ViewSpec]
) -> None:
    """Read the rows of a source, and find out which columns they have by the core's names."""
    import pyarrow as pa

    raw = join_tables(list(source.tables(options.unit, reading)))
    raw = raw.select([name for name in raw.column_names if name not in reading.left_out])
    raw = gathered(raw, reading)
    kinds: dict[str, ColumnKind] = {}

    def kind(name: str) -> ColumnKind:
        if name not in kinds:
            column = raw.column(name)
            kinds[name] = "lists" if is_lists(column) else kind_of(sample(column))
        return kinds[name]

    if not raw.column_names and not reading.left_out:
        raise _no_rows(reading.name)
    mapping = {} if source.file is not None and source.file.format == "txt" else options.columns
    columns = match_columns(raw.column_names, mapping, reading, views, kind)
    roles = {view.column for view in views if view.role in ("positive", "negative")} - {"text"}
    lists = [old for name, old in columns.items() if name not in roles and kind(old) == "lists"]
    for name, what in [*reading.left_out.items(), *((name, "lists") for name in lists)]:
        reading.say(f"column {name} is ignored: it holds {what}")
    found: dict[str, pa.ChunkedArray] = {}
    for name, old in columns.items():
        column = raw.column(old)
        if old not in lists:
            found[name] = column if is_lists(column) else _trimmed(column, name, reading.name)
    if not len(raw) or not _some(found["text"]):
        raise _no_rows(reading.name)
    encoded = [view.column for view in views if view.column in found and view.column != "text"]
    for name in [name for name in dict.fromkeys(encoded) if not _some(found[name])]:
        del found[name]
        reading.say(f"column {name} is blank in every row, so it is ignored")
    if options.unit != "sentence" and not reading.articles:
        reading.say(f"it marks no {options.unit}s, so each row stays as it is")
    reading.columns, reading.table = columns, pa.table(found)


def _trimmed(column: pa.ChunkedArray, name: str, where: str) -> pa.ChunkedArray:
    """Return a column of texts without white space around them, and blank for null.

    Raises:
        CseError: A value holds a NUL byte.
    """
    import pyarrow.compute as pc

    trimmed = pc.utf8_trim_whitespace(pc.fill_null(column, ""))
    found = pc.match_substring(trimmed, "\0")
    if pc.any(found).as_py():
        raise CseError(
            f"column {name} contains a NUL byte, so it is not text",
            where=f"{where}, row {pc.index(found, True).as_py() + 1}",
            hint="remove it or the row",
        )
    return trimmed


def _some(column: pa.ChunkedArray) -> bool:
    """Tell whether a column has a value in some row."""
    import pyarrow.compute as pc

    if is_lists(column):
        return bool(pc.any(pc.greater(pc.fill_null(pc.list_value_length(column), 0), 0)).as_py())
    return bool(pc.any(pc.not_equal(column, "")).as_py())


def sample(column: pa.ChunkedArray) -> list[str]:
    """Return values of a column that are not blank, spread evenly over it."""
    import numpy as np

    rows = np.unique(np.linspace(0, len(column) - 1, min(_SAMPLE, len(column))).astype(int))
    cells = [column[row].as_py() for row in map(int, rows)]
    texts = (text for cell in cells for text in (cell if isinstance(cell, list) else [cell]))
    return [text.strip() for text in texts if text and text.strip()]


def _no_rows(where: str) -> CseError:
    what = "contains no text, only blank lines or a header"
    return CseError(what, where=where, hint="name a file with texts")


def _check_mapping(options: DataOptions, parts: Sequence[Reading]) -> None:
    """Refuse a column of ``data.columns`` that no file has."""
    for target, source in options.columns.items():
        if not any(part.columns.get(target) == source for part in parts):
            there = dict.fromkeys(name for part in parts for name in part.columns.values())
            what = f"no file has a column {source}"
            hint = f"the columns are: {listed(list(there))}"
            raise CseError(what, where=f"data.columns.{target}", hint=hint)


def _usable(
    part: Reading, needed: NeededColumns, options: DataOptions, messages: list[str]
) -> tuple[pa.Table, FileReport]:
    """Return the rows of a source that have a text in every column that a run needs."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    name, table = part.name, part.table
    for column in needed.required:
        if column not in table.column_names and not (
            column in FILLED and column not in needed.encoded
        ):
            raise CseError(
                f"no column {column}, which this run reads",
                where=name,
                hint=f"its columns: {listed(table.column_names)}; say which one it is with "
                f"--set data.columns.{column}=NAME, name other data, or let no view read it",
            )
    table, rows = _unfolded(table, needed.required, name)
    filled = {
        column: pc.not_equal(table.column(column), "").to_numpy()
        for column in ("text", *needed.required)
        if column == "text" or column not in FILLED or column in needed.encoded
    }
    usable = np.logical_and.reduce(list(filled.values()))
    if not usable.all() and options.blank == "refuse":
        first = int(np.flatnonzero(~usable)[0])
        column = next(each for each, there in filled.items() if not there[first])
        raise CseError(
            f"column {column} is blank",
            where=f"{name}, row {rows[first] + 1}",
            hint="fill it, or --data.blank drop leaves out such rows",
        )
    if not usable.any():
        read = " or ".join(column for column in filled)
        what = f"no row is complete: each lacks {read}"
        raise CseError(what, where=name, hint="name other data, or let no view read the column")
    blank = part.blank + len(np.unique(rows[~filled["text"]]))
    incomplete = int((filled["text"] & ~usable).sum())
    if blank:
        messages.append(f"{name}: {blank:,} blank rows dropped")
    if incomplete:
        lacking = ", ".join(
            each for each, there in filled.items() if not there[filled["text"]].all()
        )
        messages.append(f"{name}: {incomplete:,} rows dropped: {lacking} blank")
    if not usable.all():
        table = table.filter(pa.array(usable))
    for column, kind in needed.types.items():
        if kind != "text" and column in table.column_names:
            values = table.column(column).to_pylist()
            read_values(values, kind, column=column, where=name, rows=rows[usable].tolist())
    return table, FileReport(name, len(table), blank, incomplete, tuple(table.column_names))


def _unfolded(table: pa.Table, needed: Sequence[str], where: str) -> tuple[pa.Table, Any]:
    """Return a table whose needed lists are rows, without the others, and each row's old one."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    lists = [name for name in table.column_names if is_lists(table.column(name))]
    table = table.select(
        [name for name in table.column_names if name not in lists or name in needed]
    )
    lengths = {
        name: pc.fill_null(pc.list_value_length(table.column(name)), 0).to_numpy()
        for name in lists
        if name in needed
    }
    if not lengths:
        return table, np.arange(len(table))
    counts = np.maximum.reduce([np.ones(len(table), dtype=np.int64), *lengths.values()])
    rows = np.repeat(np.arange(len(table)), counts)
    place = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    plain = table.select([name for name in table.column_names if name not in lengths]).take(rows)
    columns = {name: plain.column(name) for name in plain.column_names}
    for name, length in lengths.items():
        starts, own = np.cumsum(length) - length, length[rows]
        at = pa.array(starts[rows] + place % np.maximum(own, 1), mask=own == 0)
        columns[name] = _trimmed(pc.list_flatten(table.column(name)).take(at), name, where)
    return pa.table({name: columns[name] for name in table.column_names}), rows
