"""Tables: of graded or labelled rows, with the place of each, and what Python is given as one."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Set
from io import BytesIO
from itertools import chain
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

from cse_cli.plugins.installed import Installed
from cse_core.errors import CseError
from cse_core.files import atomic_file, cache_folder
from cse_core.registry.names import source_of, unpacked
from cse_core.texts import Seen, Wanted
from cse_core.words import lacks_word_spaces
from cse_defaults.texts.files import file_lines
from cse_defaults.texts.plugin import ENDINGS
from cse_defaults.texts.sources import default_registry, find_source
from cse_defaults.texts.tables import (
    BODIES,
    as_object,
    has_lone_surrogate,
    is_article,
    join_tables,
    record_tables,
    unfold,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from cse_core.registry.registry import Registry

TABLES = (".tsv", ".csv", ".jsonl", ".parquet", ".arrow")
"""Endings of files whose rows have named values."""
TABLE_SUFFIXES = tuple(end + packed for end in TABLES for packed in (".gz", ".zst", ""))
"""Endings of these, compressed ones first."""
ARTICLE_COLUMNS = BODIES
"""Columns that make a row an article: its paragraphs, each a list of sentences."""
Row = tuple[str, dict[str, Any]]
"""Where a row is, for errors (``pairs.tsv, line 3``), and its values by column."""


def table_name(path: str | os.PathLike[str]) -> str:
    """Return a file's name without ``TABLE_SUFFIXES``: ``stsb.dev`` of ``stsb.dev.tsv.gz``."""
    name = Path(path).name
    for suffix in TABLE_SUFFIXES:
        if name.lower().endswith(suffix) and len(name) > len(suffix):
            return name[: -len(suffix)]
    return name


def read_table(
    path: str | os.PathLike[str], registry: Registry | None = None
) -> tuple[list[str], Iterator[Row]]:
    """Read a table of any source row by row, values as they are.

    A tsv file has one tab between fields, and quotes if ``?quotes=yes`` is behind its name; a csv
    file has ordinary quoting; a jsonl file has one object a line, and the keys of its first object
    are its columns. Each may be compressed; text is UTF-8, with or without a byte-order mark. Other
    files are read by the sources of ``registry``, by default of the installed plugins.

    Returns:
        The columns, and the rows with their places. Blank lines are passed over.

    Raises:
        CseError: If the file is missing, a directory, unreadable, empty, blank, of another
            format, not what its name says, not UTF-8, or (while rows are read) a row is malformed.
    """
    name = os.fspath(path)
    if registry is None and source_of(name, default_registry()) is None:
        registry = Installed().registry
    source = find_source(name, registry, where=None)
    at, reader, wanted = source.place.name, source.reader, Wanted(options=source.place.options)
    if source.seen.unnamed:
        what = "graded or labelled rows are not read from this kind of file"
        hint = "write them as " + ", ".join(f"*{end}" for end in TABLES) + " (each also .gz)"
        raise CseError(what, where=name, hint=hint)
    if tables := getattr(reader, "tables", None):
        columns: list[str] = next(tables(at, wanted)).column_names
        return columns, ((place, dict(row)) for place, row in reader.rows(at, wanted))
    every = ((place, as_object(place, row)) for place, row in reader.rows(at, wanted))
    fields = source.seen  # of a csv or tsv file, once a row is read
    rows = (row for row in every if not fields.from_header or any(map(str.strip, row[1].values())))
    first = next(rows, None)
    if first is None:
        raise CseError("the file contains only blank lines or a header", where=name)
    return list(first[1]), chain([first], rows)


def read_lines(path: str | os.PathLike[str]) -> Iterator[str]:
    """Yield the lines of a UTF-8 file of any name, compressed or not, without their ends.

    Raises:
        CseError: If it is missing, empty, damaged, not UTF-8, or holds NUL bytes.
    """
    return file_lines(os.fspath(path))


def article_text(row: Mapping[str, Any], place: str) -> str | None:
    """Return an article's sentences as one text, None of any other row.

    Raises:
        CseError: If its sections or paragraphs have another form; ``place`` is where it is.
    """
    if not is_article(row):
        return None
    (document,) = unfold(row, "document", number=0, where=place)
    return str(document["text"])


def files_of(given: Any, where: str) -> list[str]:
    """Return the names of files and data sets that a Python argument gives, or is made.

    A string is a name, and so are the strings of a list of which one is written like a file's, or
    is a data set's; single words are texts. A DataFrame, a
    ``datasets.Dataset``, a table of Arrow, a dictionary of columns, or texts or dictionaries of a
    list or a generator become a parquet file in the cache, named by its content, so that a run of
    them is resumed and repeated like any other.

    Raises:
        CseError: It is empty or nothing of these; ``where`` is the argument, and its row is named.
    """
    if given is None:
        return []
    if isinstance(given, str | os.PathLike):
        return [os.fspath(given)]
    table = isinstance(given, Mapping) or _is_table(given)
    items = _table_rows(given, where) if table else _items(given, where)
    if not items:
        hint = "name a file; a pattern that matches none gives such a list"
        raise CseError("is an empty list", where=where, hint=hint)
    if any(map(_is_table, items)):
        return [name for item in items for name in files_of(item, where)]
    # Of a column or a generator a text is never a name.
    names = [item for item in items if _may_be_name(item, isinstance(given, list | tuple))]
    file = next(filter(_is_name, names), None)
    if 2 * len(names) > len(items) and (file is not None or len(items) == 1):
        return [os.fspath(item) for item in items]
    if file is not None:
        hint = f"give files, or texts and rows, not both; as a text: {where}={{'text': […]}}"
        raise CseError("is the name of a file among texts", where=where, value=file, hint=hint)
    rows = ((f"{where}, row {n}", _row(item, where, n)) for n, item in enumerate(items, 1))
    return [_kept(join_tables(list(record_tables(rows, Wanted(), Seen()))), where)]


def texts_of(given: Any, where: str) -> list[str]:
    """Return the texts of a list, a column or a generator.

    Raises:
        CseError: It is a table, or one of its rows is not a text.
    """
    if isinstance(given, Mapping) or _is_table(given):
        hint = f"give the texts of one column: {where}['text']"
        raise CseError("is a table, not a list of texts", where=where, hint=hint)
    texts = [given] if isinstance(given, str) else _items(given, where)
    for number, text in enumerate(texts, 1):
        if not isinstance(text, str) or has_lone_surrogate(text):
            hint = "give each row as a text"
            raise CseError("is not a text", where=f"{where}, row {number}", value=text, hint=hint)
    return texts


def _is_table(given: Any) -> bool:
    """Tell whether a table of any library is given."""
    return hasattr(given, "columns") or hasattr(given, "column_names")


def _may_be_name(item: Any, listed: bool) -> bool:
    """Tell whether an item, of a list where it is ``listed``, may name a file or a data set."""
    if listed and isinstance(item, str):
        return os.path.exists(item) or len(item.split()) == 1 and not lacks_word_spaces([item])
    return isinstance(item, os.PathLike)


def _is_name(item: str | os.PathLike[str]) -> bool:
    """Tell whether one that may be a name is that of a file, there or not, or of a data set."""
    name = os.fspath(item)
    named = name is not item or unpacked(name).endswith(ENDINGS) or "/" in name
    return named or os.path.exists(name) or name in Installed().registry.datasets()


def _items(given: Any, where: str) -> list[Any]:
    listed = isinstance(given, Iterable) or hasattr(given, "to_pylist")
    if isinstance(given, Set | bytes | Mapping) or not listed:
        what = "has no order" if isinstance(given, Set) else "is not a list of texts"
        raise CseError(what, where=where, value=given, hint="give a list")
    return list(given.to_pylist() if hasattr(given, "to_pylist") else given)


def _table_rows(given: Any, where: str) -> list[Any]:
    """Return the rows of a table as dictionaries."""
    if isinstance(given, Mapping):
        if any(map(_is_table, given.values())):
            hint = f"give one of them: {where}[{next(iter(given))!r}]"
            raise CseError(f"has the splits {', '.join(given)}", where=where, hint=hint)
        if any(isinstance(column, str | bytes | Set | Mapping) for column in given.values()):
            hint = f"write {where}={{'text': ['…', '…']}}"
            raise CseError("must have lists as columns", where=where, value=given, hint=hint)
        try:
            return [dict(zip(given, row, strict=True)) for row in zip(*given.values(), strict=True)]
        except (TypeError, ValueError) as error:
            what = "must have lists of the same length as columns"
            raise CseError(what, where=where, value=given) from error
    if hasattr(given, "notna"):  # a DataFrame, which has several words for nothing
        return list(given.astype(object).where(given.notna(), None).to_dict("records"))
    return list(given.to_dicts() if hasattr(given, "to_dicts") else _items(given, where))


def _row(item: Any, where: str, number: int) -> Mapping[str, Any]:
    """Return a text or a row as a dictionary of plain values."""
    if isinstance(item, str):
        return {"text": item}
    if isinstance(item, Mapping):
        row = {str(k): v.tolist() if hasattr(v, "tolist") else v for k, v in item.items()}
        for name, value in row.items():
            if isinstance(value, bytes | Set):
                what = f"column {name} holds neither a text nor a list of texts"
                hint = "decode bytes, write sets as lists, or leave the column out"
                raise CseError(what, where=f"{where}, row {number}", value=value, hint=hint)
        return row
    hint = "give each row as a text, or as a dictionary of its columns"
    raise CseError("is not a text", where=f"{where}, row {number}", value=item, hint=hint)


def _kept(table: pa.Table, name: str) -> str:
    """Return the file that a table is in: in the cache, or for as long as this process lives."""
    import pyarrow.parquet as pq

    written = BytesIO()
    pq.write_table(table, written)
    content = written.getvalue()
    cache, digest = cache_folder(), hashlib.sha256(content).hexdigest()[:16]
    folder = Path(mkdtemp(prefix="cse-data-")) if cache is None else cache / "data" / digest
    path = folder.absolute() / f"{name}.parquet"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with atomic_file(path, private=True, keep=not path.exists()) as beside:
            beside.write_bytes(content)
    except OSError as error:
        what = f"cannot be written: {error.strerror or error}"
        raise CseError(what, where=str(path), hint="CSE_CACHE names another folder") from error
    return str(path)
