"""Read the training texts that ``data.*`` names, and take the rows that a run can use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from cse_core.errors import CseError
from cse_core.hookspecs import CORE_VIEWS
from cse_core.records import ViewSpec
from cse_core.texts import FILLED, NO_COLUMNS, DataOptions, LoadReport, NeededColumns, Wanted
from cse_defaults.texts.columns import (
    ColumnKind,
    check_named,
    check_texts,
    gathered,
    kind_of,
    listed,
    match_columns,
    ordered,
    read_values,
    sampled,
)
from cse_defaults.texts.corpus import Corpus, TextColumn, document_numbers, hold_out
from cse_defaults.texts.sources import TextSource, find_source
from cse_defaults.texts.tables import (
    MAX_TEXTS,
    as_lists,
    changed,
    filtered,
    in_lists,
    is_lists,
    join_tables,
    lengths,
    text_array,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from cse_core.registry.registry import Registry

SOURCE = "@source"
"""Stands in ``data.columns`` for the place of a row's source in ``data.path``."""


@dataclass(frozen=True)
class SourceTable:
    """The rows of a source.

    Attributes:
        source: Where they come from.
        table: Its rows, by the core's names: texts, trimmed, or lists of texts.
        columns: Name of the core -> name in the source, the core's own first.
        texts: Columns of a file that hold texts of more than a word.
    """

    source: TextSource
    table: pa.Table
    columns: Mapping[str, str]
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Data:
    """What ``data.*`` names, read: every row and every column, whatever a run takes of them.

    Attributes:
        options: The table ``data``.
        sources: Each source of ``data.path`` that was read, with its rows.
        columns: The columns that some source has, ``text`` first.
        messages: What a user should know, a line each.
    """

    options: DataOptions
    sources: list[SourceTable]
    columns: tuple[str, ...]
    messages: list[str]
    _made: list[tuple[NeededColumns, Corpus]] = field(default_factory=list, repr=False)

    @property
    def texts(self) -> set[str]:
        """Return the columns of files that hold texts of more than a word."""
        return {name for source in self.sources for name in source.texts}

    @property
    def graded(self) -> set[str]:
        """Return the columns whose texts another column grades."""
        return {"positive" for part in self.sources if part.source.seen.grades}

    @property
    def renamed(self) -> dict[str, str]:
        """Return names of columns, by those that they have in their files, where these differ."""
        names = (pair for part in self.sources for pair in part.columns.items())
        return {old: new for new, old in names if old not in (new, SOURCE)}

    def corpus(self, needed: NeededColumns = NO_COLUMNS) -> Corpus:
        """Return the rows that have a text in ``text`` and in every column that a run needs.

        Lists of texts that it needs become rows: as many as the longest list of a row is long; a
        shorter one begins again; those of ``needed.lists`` stay lists. A column that a source lacks
        and nothing needs is blank there.
        """
        for key, corpus in self._made:
            if key == needed:
                return corpus
        self._made.append((needed, self._corpus(needed)))
        return self._made[-1][1]

    def _corpus(self, needed: NeededColumns) -> Corpus:
        import pyarrow as pa

        messages, tables, blank, incomplete = [*self.messages], [], 0, 0
        for number, part in enumerate(self.sources):
            name = part.source.name
            table, empty, partial = _usable(part, needed, self.options.blank == "refuse", messages)
            blank, incomplete = blank + empty, incomplete + partial
            if self.options.weights and (weight := self.options.weights[number]) != 1:
                rows, table = len(table), _weighted(table, weight)
                line = f"{rows:,} rows, of which an epoch takes {len(table):,}"
                messages.append(f"{name}: {line}")
            if self.options.prompts and (prompt := self.options.prompts[number]):
                table = _prompted(table, prompt, ("text", *needed.encoded))
            tables.append(table)
        present = {name for table in tables for name in table.column_names}
        names = [name for name in self.columns if name in present]
        lists = {n for table in tables for n in table.column_names if is_lists(table[n])}
        fill = {name: "" if needed.types.get(name) in (None, "text") else "0" for name in names}
        for number, table in enumerate(tables):
            for name in (n for n in names if n not in (*lists, *table.column_names)):
                table = table.append_column(name, pa.repeat(fill[name], len(table)))
            tables[number] = table
        sources = [part.source for part in self.sources]
        report = LoadReport(
            names=tuple(source.name for source in sources),
            blank_dropped=blank,
            incomplete_dropped=incomplete,
            made_up=tuple(source.name for source in sources if source.place.spec.synthetic),
            messages=tuple(messages),
            commits={source.name: source.commit for source in sources if source.commit},
        )
        documents = document_numbers(tables) if "document" in names else None
        whole = pa.concat_tables(tables, promote_options="default").select(names)
        corpus = Corpus(whole, documents, report)
        return hold_out(corpus, self.options.held_out)


def _prompted(table: pa.Table, prompt: str, columns: Sequence[str]) -> pa.Table:
    """Return a table with a text before those of some columns."""
    import pyarrow.compute as pc

    def change(part: pa.Table, _: int) -> pa.Table:
        for name in {*columns}.intersection(part.column_names):
            place, column = part.column_names.index(name), part.column(name)
            texts = pc.list_flatten(column) if is_lists(column) else column
            texts = pc.binary_join_element_wise(prompt, texts, "")
            if is_lists(column):
                texts = in_lists(texts, lengths(column))
            part = part.set_column(place, name, texts)
        return part

    return changed(table, change)


def _weighted(table: pa.Table, weight: float) -> pa.Table:
    """Return a table with its rows so many times, of a fraction with some of them once more."""
    import numpy as np
    import pyarrow as pa

    whole, part = divmod(weight, 1)
    extra = max(round(part * len(table)), int(not whole))
    some = np.zeros(len(table), bool)
    some[np.random.default_rng(0).permutation(len(table))[:extra]] = True
    return pa.concat_tables([*[table] * int(whole), filtered(table, some)])


def load_corpus(
    options: DataOptions, registry: Registry | None = None, needed: NeededColumns = NO_COLUMNS
) -> Corpus:
    """Return the rows of ``read_data`` that a run can use."""
    return read_data(options, registry).corpus(needed)


def read_data(options: DataOptions, registry: Registry | None = None) -> Data:
    """Read all rows that ``data.path`` names, up to ``data.limit``.

    Nothing is written, but for caches. ``registry`` has the sources and views.
    """
    if not options.path:
        raise CseError("no training texts", where="data.path", hint="name a file: --data FILE")
    views = CORE_VIEWS if registry is None else tuple(registry.views.values())
    twice = sorted({name for name in options.path if options.path.count(name) > 1})
    messages = [f"{name}: given twice, so its rows are used twice" for name in twice]
    sources = [find_source(name, registry) for name in options.path]
    for name, values in (("weights", options.weights), ("prompts", options.prompts)):
        if values and len(values) != len(sources):
            what = f"{len(values)} of {len(sources)} data sets have one"
            raise CseError(what, where=f"data.{name}", value=values, hint="name one for each")
        other = "held_out" if options.held_out else options.split_tokens and "split_tokens"
        if values and other and (name, other) != ("weights", "split_tokens"):
            what = f"changes the texts that data.{other} reads, so a run has one of them"
            raise CseError(what, where=f"data.{name}", value=values, hint="leave one out")
    parts: list[SourceTable] = []
    left = options.limit
    for number, source in enumerate(sources):
        if left == 0:
            messages.append(f"{source.name}: not read, because data.limit is reached first")
            continue
        parts.append(part := _read(source, left, number, options, views))
        messages += [f"{source.name}: {message}" for message in source.seen.messages]
        left = left and left - len(part.table)
    if left != 0:
        check_named(options.columns, [part.columns for part in parts])
    names = {name: name for part in parts for name in part.table.column_names}
    return Data(options, parts, tuple(ordered(names, views)), messages)


def _read(
    source: TextSource,
    limit: int | None,
    number: int,
    options: DataOptions,
    views: Sequence[ViewSpec],
) -> SourceTable:
    """Read the rows of a source, and find out which columns they have by the core's names."""
    import pyarrow as pa

    where = source.name
    titles = options.titles == "before"
    wanted = Wanted(limit, options.unit, options=source.place.options, titles=titles)
    raw = join_tables(source.tables(wanted))
    seen = source.seen
    raw = raw.select([name for name in raw.column_names if name not in seen.left_out])
    raw = gathered(raw, where, seen)

    @cache
    def contents(name: str) -> ColumnKind:
        """Guess it from some values."""
        return kind_of(sampled(raw.column(name)))

    def kind(name: str) -> ColumnKind:
        """Say of lists that they are some, whatever they hold."""
        return "lists" if is_lists(raw.column(name)) else contents(name)

    none = "contains no text, only blank lines or a header"
    nothing = CseError(none, where=where, hint="name a file with texts")
    if not raw.column_names and not seen.left_out:
        raise nothing
    asked = {name: old for name, old in options.columns.items() if old != SOURCE}
    mapping = {} if seen.unnamed else asked
    columns = match_columns(raw.column_names, mapping, where, seen, views, kind)
    lists = {n: "lists" for n in map(columns.get, ("text", *FILLED)) if n and kind(n) == "lists"}
    for name, what in {**seen.left_out, **lists}.items():
        seen.messages.append(f"column {name} is ignored: it holds {what}")
    table = {name: raw.column(old) for name, old in columns.items() if old not in lists}
    for name, column in table.items():
        if column.null_count and not is_lists(column):
            table[name] = changed(pa.table([column], [name]), _without_nulls).column(0)
    if not _is_filled(table["text"]):
        raise nothing
    check_texts(table["text"], columns["text"], where)
    for name in dict.fromkeys(view.column for view in views if view.column in table):
        if not _is_filled(table[name]):
            del table[name]
            seen.messages.append(f"column {name} is blank in every row, so it is ignored")
    if options.unit != "sentence" and not seen.articles:
        seen.messages.append(f"it marks no {options.unit}s, so each row stays as it is")
    for name in options.columns.keys() - asked.keys():
        columns[name] = SOURCE
        table[name] = pa.chunked_array([pa.repeat(str(number), len(raw))])
    # Of the columns of documents only the text is one that views could read.
    names = () if source.place.spec.is_dataset or "headings" in table else tuple(table)
    texts = (n for n in names if columns[n] != SOURCE and contents(columns[n]) == "texts")
    return SourceTable(source, pa.table(table), columns, tuple(texts))


def _without_nulls(part: pa.Table, _: int) -> pa.Table:
    """Return a column with blanks for nulls."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pa.table([pc.fill_null(part.column(0), "")], part.column_names)


def _is_filled(column: pa.ChunkedArray) -> bool:
    """Tell whether a column has a value in some row."""
    import pyarrow.compute as pc

    lengths = pc.list_value_length if is_lists(column) else pc.binary_length
    return bool(pc.max(lengths(column)).as_py())


def _usable(
    part: SourceTable, needed: NeededColumns, refuse: bool, messages: list[str]
) -> tuple[pa.Table, int, int]:
    """Return a source's rows that have a text in every column that a run needs.

    With them comes how many were dropped: blank ones, and ones that lack something else.
    """
    import numpy as np
    import pyarrow.compute as pc

    name, names = part.source.name, part.table.column_names
    may_lack = {*FILLED, *(needed.partial - {*names})} - {*needed.encoded}
    filled = [item for item in needed.required if item not in may_lack]
    grades = part.source.seen.grades
    if grades and grades not in needed.types and "positive" in filled:
        text, pair, by = (part.columns[column] for column in ("text", "positive", grades))
        raise CseError(
            f"{by} grades the pairs of {text} and {pair}, and this run takes all as positives",
            where=name,
            hint=f"choose a loss that reads {grades}, or take every pair as a positive: "
            f"--set data.columns.positive={pair}",
        )
    for column in filled:
        if column not in names:
            hint = f"its columns: {listed(names)}; say which one it is with --set data.columns."
            hint += f"{column}=NAME, name other data, or let no view read it"
            raise CseError(f"no column {column}, which this run reads", where=name, hint=hint)
        if needed.types.get(column, "text") == "text":
            check_texts(part.table.column(column), part.columns[column], name)
    unread = [n for n in names if is_lists(part.table[n]) and n not in (*filled, *part.texts)]
    messages += [f"{name}: column {part.columns[n]} is ignored: it holds lists" for n in unread]
    table, rows = _unfolded(_as_lists(part.table, needed, name), needed, name)
    has = {}
    for item in ("text", *filled):
        column = table.column(item)
        if not is_lists(column) or needed.lists.get(item) == "draw":
            has[item] = lengths(column) > 0
    usable = np.logical_and.reduce(list(has.values()))
    lacking = [item for item in has if not has[item][has["text"]].all()]
    if refuse and not usable.all():
        first = int(np.flatnonzero(~usable)[0])
        column = next(item for item in has if not has[item][first])
        where, hint = f"{name}, row {rows[first] + 1}", "--data.blank drop leaves out such rows"
        raise CseError(f"column {column} is blank", where=where, hint=f"fill it, or {hint}")
    if not usable.any():
        what = f"no row is complete: each lacks {' or '.join(has)}"
        raise CseError(what, where=name, hint="name other data, or let no view read the column")
    blank = len(np.unique(rows[~has["text"]]))
    incomplete = int((has["text"] & ~usable).sum())
    if blank:
        messages.append(f"{name}: {blank:,} blank row{'s' * (blank > 1)} dropped")
    if incomplete:
        many = f"{incomplete:,} row{'s' * (incomplete > 1)}"
        messages.append(f"{name}: {many} dropped: {', '.join(lacking)} blank")
    if not usable.all():
        table, rows = filtered(table, usable), rows[usable]
    for column, kind in needed.types.items():
        if kind != "text" and column in names:
            cells, places = table.column(column), rows
            if is_lists(cells):
                cells, places = pc.list_flatten(cells), np.repeat(rows, lengths(cells))
            read_values(TextColumn(cells), kind, column=column, where=name, rows=places)
    return table, blank, incomplete


def _as_lists(table: pa.Table, needed: NeededColumns, where: str) -> pa.Table:
    """Return a table whose ``needed.lists`` are lists without blank texts, and numbers beside them.

    Raises:
        CseError: If a list has more texts than a row may have, or not as many numbers.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = dict(zip(table.column_names, table.columns, strict=True))
    for name in {**needed.lists, **dict.fromkeys(needed.beside.values())}:
        beside = [n for n, texts in needed.beside.items() if texts == name and n in columns]
        if name not in needed.lists:  # a number of a row is that of each text of its list
            beside = [n for n in beside if is_lists(columns[n])]
        if name not in columns or not (beside or name in needed.lists):
            continue
        cells = {n: as_lists(columns[n]) for n in (name, *beside)}
        counts = {n: lengths(column) for n, column in cells.items()}
        for other in beside:
            if len(wrong := np.flatnonzero(counts[other] != counts[name])):
                some, texts = counts[other][wrong[0]], counts[name][wrong[0]]
                raise CseError(
                    f"column {other} has {some} numbers for {texts} texts in column {name}",
                    where=f"{where}, row {wrong[0] + 1}",
                    hint="write a number for each text",
                )
        if name not in needed.lists:
            continue
        if len(long := np.flatnonzero(counts[name] > MAX_TEXTS)):
            what = (
                f"a list of {counts[name][long[0]]} texts in column {name}, of at most {MAX_TEXTS}"
            )
            raise CseError(what, where=f"{where}, row {long[0] + 1}", hint="shorten it")
        filled = lengths(pc.list_flatten(cells[name])) > 0
        if not filled.all():
            rows = np.repeat(np.arange(len(table)), counts[name])[filled]
            kept = np.bincount(rows, minlength=len(table))
            places = pa.array(np.flatnonzero(filled))
            cells = {n: in_lists(pc.list_flatten(c).take(places), kept) for n, c in cells.items()}
        columns |= cells
    return pa.table(columns)


def _unfolded(table: pa.Table, needed: NeededColumns, where: str) -> tuple[pa.Table, Any]:
    """Return a table whose needed lists are rows, without the others, and each row's old one.

    Those of ``needed.lists`` and the numbers beside them stay lists.
    """
    import numpy as np

    every = [name for name in table.column_names if is_lists(table.column(name))]
    kept = [name for name in every if needed.beside.get(name, name) in needed.lists]
    lists = {n: table[n].to_pylist() for n in every if n in needed.required and n not in kept}
    for name in lists:
        if needed.types.get(name, "text") != "text" and name not in needed.beside:
            what = (
                f"column {name} holds lists, and the part that reads it takes a number of each row"
            )
            raise CseError(what, where=where, hint="name the views whose texts the numbers are of")
    table = table.drop_columns([name for name in every if name not in kept])
    if not lists:
        return table, np.arange(len(table))
    lists = {name: [cell or [""] for cell in cells] for name, cells in lists.items()}
    counts = [max(map(len, row)) for row in zip(*lists.values(), strict=True)]
    rows = np.repeat(np.arange(len(table)), counts)
    table = table.take(rows)
    for name, cells in lists.items():
        texts = [
            cell[place % len(cell)]
            for cell, count in zip(cells, counts, strict=True)
            for place in range(count)
        ]
        table = table.append_column(name, text_array(texts))
    return changed(table, lambda part, _: part), rows
