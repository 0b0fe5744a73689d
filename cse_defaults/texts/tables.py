"""Rows of any source as Arrow tables with columns of text, and notes on what was left out.

Articles are unfolded into sentences, paragraphs or documents. Two forms are read:
``{"id", "title", "sections": [[heading, [sentence, …]], …]}`` and
``{"id", "title", "paras": [[sentence, …], …]}``; other plain fields go with every row.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from itertools import groupby, islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from cse_core.errors import CseError
from cse_core.files import cache_folder
from cse_core.texts import Seen, Unit, Wanted, in_context

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

TextCell = str | list[str] | None
"""What a row has in a column: a text, several, or none."""
Item = TypeVar("Item")
BODIES = ("sections", "paras")
"""Fields that make a JSON object an article."""
ROWS = 20_000
"""Rows of a table that a reader yields, about."""
LARGE = 2**25
"""Bytes of a file, or of a table, from which on texts lie in a file that is mapped into memory."""
MAX_TEXTS = 256
"""Texts of a list that stays one, and numbers beside them; more numbers are a vector."""
VECTORS = f"lists of more than {MAX_TEXTS} numbers"
"""What a column holds that is left out for it."""
NUMBER = re.compile(r"[-+]?[\d.,]+(e[-+]?\d+)?|nan", re.IGNORECASE)
_HALF = re.compile("[\ud800-\udfff]")
_FORMS: dict[str, TypeAdapter[Any]] = {
    "sections": TypeAdapter(list[tuple[Any, list[str]]]),
    "paras": TypeAdapter(list[list[str]]),
}
_ARTICLE = (
    'an article is {"id", "title", "sections": [[heading, [sentence, …]], …]} '
    'or {"id", "title", "paras": [[sentence, …], …]}'
)


def batched(rows: Iterable[Item], limit: int | None) -> Iterator[list[Item]]:
    """Yield rows some thousand at a time, up to the limit."""
    left = islice(rows, limit)
    while batch := list(islice(left, ROWS)):
        yield batch


def text_table(columns: Mapping[str, Sequence[TextCell]]) -> pa.Table:
    """Return columns of text, or of lists of texts where one is a list, as an Arrow table."""
    import pyarrow as pa

    return pa.table({name: text_array(column) for name, column in columns.items()})


def text_array(cells: Sequence[TextCell]) -> pa.Array:
    """Return texts, or lists of texts where one is a list, as an Arrow array."""
    import pyarrow as pa

    if list in set(map(type, cells)):
        lists = [[cell] if isinstance(cell, str) else cell for cell in cells]
        return pa.array(lists, pa.list_(pa.string()))
    builder = pa.lib.StringBuilder()  # pa.array of a list imports pandas first: half a second
    builder.append_values(cells)
    return builder.finish()


def join_tables(tables: list[pa.Table]) -> pa.Table:
    """Return tables as one: columns that some lack are null there, texts beside lists are lists."""
    import pyarrow as pa

    parts = [dict(zip(t.column_names, t.columns, strict=True)) for t in tables]
    lists = {name for part in parts for name in part if is_lists(part[name])}
    for part in parts:
        for name in lists & part.keys():
            if not is_lists(part[name]):
                cells = [None if text is None else [text] for text in part[name].to_pylist()]
                part[name] = pa.array(cells, pa.list_(pa.string()))
    tables = [pa.table(part) for part in parts]
    return pa.concat_tables(tables, promote_options="default") if tables else pa.table({})


def changed(table: pa.Table, change: Callable[[pa.Table, int], pa.Table]) -> pa.Table:
    """Return a table after a change of some rows at a time; that of a large one is mapped.

    ``change`` gets rows and the number of the first. What cannot be written is held in memory.
    """
    import pyarrow as pa

    parts = [(table.slice(at, ROWS), at) for at in range(0, max(1, len(table)), ROWS)]
    folder = cache_folder()
    if folder is not None and table.nbytes >= LARGE:
        with suppress(OSError):
            return pa.concat_tables(mapped((change(*part) for part in parts), folder))
    return pa.concat_tables(change(*part) for part in parts)


def filtered(table: pa.Table, keep: NDArray[np.bool_]) -> pa.Table:
    """Take the rows of a table that are kept, ``[rows]``."""
    import numpy as np
    import pyarrow as pa

    def change(part: pa.Table, at: int) -> pa.Table:
        bits = np.packbits(keep[at : at + len(part)], bitorder="little")
        buffers = [None, pa.py_buffer(bits)]  # pa.array would import pandas
        return part.filter(pa.Array.from_buffers(pa.bool_(), len(part), buffers))

    return changed(table, change)


def mapped(tables: Iterable[pa.Table], folder: Path) -> list[pa.Table]:
    """Return tables over the memory of a file, which is gone when they are.

    Raises:
        OSError: If it cannot be written into the folder.
    """
    import pyarrow as pa

    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryFile(dir=folder) as file:
        for schema, same in groupby(tables, lambda table: table.schema):
            with pa.ipc.new_stream(file, schema) as stream:
                for table in same:
                    stream.write_table(table)
        file.flush()
        whole = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if file.tell() else b""
    source, read = pa.BufferReader(pa.py_buffer(whole)), []
    while source.tell() < source.size():
        read.append(pa.ipc.open_stream(source).read_all())
    return read


def record_tables(
    records: Iterable[tuple[str, Any]], wanted: Wanted, seen: Seen
) -> Iterator[pa.Table]:
    """Yield objects with named values, each behind its place, as Arrow tables of text.

    Articles are unfolded into units.
    """
    for batch in batched(_plain_rows(records, wanted, seen), wanted.limit):
        names = dict.fromkeys(name for _, row in batch for name in row)
        try:
            yield text_table({name: [row.get(name) for _, row in batch] for name in names})
        except UnicodeEncodeError as error:
            raise CseError(
                "half a surrogate pair, which is not valid text",
                where=next(
                    place
                    for place, row in batch
                    if any(has_lone_surrogate("".join(cell or "")) for cell in row.values())
                ),
                hint="write the whole character or remove it",
            ) from error


def _plain_rows(
    records: Iterable[tuple[str, Any]], wanted: Wanted, seen: Seen
) -> Iterator[tuple[str, dict[str, TextCell]]]:
    """Yield rows of texts with their places."""
    for number, (place, value) in enumerate(records, 1):
        record = as_object(place, value)
        plain = set(map(type, record.values())) == {str}  # as nearly all are: nothing to change
        article = not plain and is_article(record)
        seen.articles |= article
        parts = unfold(record, wanted.unit, number=number, where=place) if article else (record,)
        for part in parts:
            yield (
                place,
                part if plain else {n: _cell(n, v, seen, wanted.titles) for n, v in part.items()},
            )


def _cell(name: str, value: object, seen: Seen, titles: bool) -> TextCell:
    """Return a value as text, or as the texts that it holds; what holds none is left out.

    Lists are of texts, of numbers, or of objects with a ``text`` each, before which its title
    stands with ``titles``. None and NaN are no text, None in a list a blank one.
    """
    if isinstance(value, str) or value is None or value != value:
        return value if isinstance(value, str) else None
    if isinstance(value, bytes | Set):
        seen.left_out[name] = f"values of type {type(value).__name__}"
        return None
    if not isinstance(value, list | tuple | dict):
        return str(value).lower() if isinstance(value, bool) else str(value)
    cells = value.get("text") if isinstance(value, dict) else value
    items = cells if isinstance(cells, list | tuple) else [{"text": cells}]
    texts: list[Any] = [_item(item) for item in items]
    heads = [i.get("title") if titles and isinstance(i, dict) else None for i in items]
    if any(isinstance(head, str) and head.strip() for head in heads):
        line = f"titles stand before the texts of {name} (without them: --data.titles none)"
        seen.messages += [line] * (line not in seen.messages)
        texts = [
            in_context(text.strip(), head.strip()) if isinstance(head, str) and text else text
            for text, head in zip(texts, heads, strict=True)
        ]
    if len(items) > MAX_TEXTS and isinstance(items[0], int | float):
        seen.left_out[name] = VECTORS
        return None
    if all(isinstance(text, str) for text in texts):
        return [text.strip() for text in texts]
    seen.left_out[name] = "objects" if isinstance(value, dict) else "lists"
    return None


def _item(item: Any) -> Any:
    """Return the text of an item of a list: a number as text, None as a blank one."""
    if isinstance(item, dict):
        return item.get("text")
    return "" if item is None else str(item) if type(item) in (int, float) else item


def is_article(record: Mapping[str, Any]) -> bool:
    """Tell whether a JSON object is an article."""
    return any(isinstance(record.get(field), list) for field in BODIES)


def unfold(
    record: Mapping[str, Any], unit: Unit, *, number: int, where: str
) -> Iterator[dict[str, Any]]:
    """Yield the rows of an article: text, document (``number`` where it has none), other fields."""
    field = next(field for field in BODIES if isinstance(record.get(field), list))
    try:
        paragraphs = _FORMS[field].validate_python(record[field])
    except ValidationError as error:
        what, shown = f"{field}: not lists of sentences", str(record[field])[:60]
        raise CseError(what, where=where, value=shown, hint=_ARTICLE) from error
    if field == "sections":
        paragraphs = [paragraph for _, paragraph in paragraphs]
    texts = [sentence for paragraph in paragraphs for sentence in paragraph]
    if unit != "sentence":
        units = [texts] if unit == "document" else filter(None, paragraphs)
        texts = [" ".join(filter(None, map(str.strip, block))) for block in units]
    shared = {n: v for n, v in record.items() if n not in (*BODIES, "id", "text", "document")}
    shared["document"] = record.get("id", record.get("document", number))
    for text in texts:
        yield {"text": text, **shared}


def as_object(place: str, value: Any) -> dict[str, Any]:
    """Return a JSON value that is an object, or the object that a list of texts stands for."""
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return {"texts": value}
    if not isinstance(value, dict):
        what = "not an object with named values"
        hint = 'write one object per line: {"text": "…"}'
        raise CseError(what, where=place, value=str(value)[:40], hint=hint)
    return value


def has_lone_surrogate(text: str) -> bool:
    """Tell whether a text holds half a surrogate pair, for which UTF-8 has no form."""
    return _HALF.search(text) is not None


def trimmed(table: pa.Table, where: str, before: int) -> pa.Table:
    """Return a table whose texts have no white space around them; null stays.

    Raises:
        CseError: If one holds a NUL byte; ``before`` is the number of rows before the first.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = dict(zip(table.column_names, table.columns, strict=True))
    for name, column in columns.items():
        lists = is_lists(column)
        nulls = pc.match_substring(pc.list_flatten(column) if lists else column, "\0")
        if pc.any(nulls).as_py():
            row = pc.index(nulls, True).as_py()
            row = before + (pc.list_parent_indices(column)[row].as_py() if lists else row)
            what = f"column {name} contains a NUL byte, so it is not text"
            raise CseError(what, where=f"{where}, row {row + 1}", hint="remove it or the row")
        if not lists:
            columns[name] = pc.utf8_trim_whitespace(column)
    return pa.table(columns)


def is_lists(column: pa.ChunkedArray) -> bool:
    """Tell whether a column holds lists of texts."""
    import pyarrow.types as kinds

    return bool(kinds.is_list(column.type))


def lengths(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return ``[rows]`` how many texts the lists of a column have, or how long its texts are."""
    import numpy as np
    import pyarrow.compute as pc

    size = pc.list_value_length if is_lists(column) else pc.binary_length
    chunks = (size(chunk.fill_null([]) if chunk.null_count else chunk) for chunk in column.chunks)
    sizes = map(np.from_dlpack, chunks)
    return np.concatenate([np.empty(0, np.int64), *sizes])


def in_lists(texts: pa.ChunkedArray, sizes: NDArray[np.int64]) -> pa.ChunkedArray:
    """Return texts that lie end to end as lists of ``[rows]`` sizes."""
    import numpy as np
    import pyarrow as pa

    offsets = pa.array(np.concatenate([[0], sizes]).cumsum(dtype=np.int32))
    whole = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    return pa.chunked_array([pa.ListArray.from_arrays(offsets, whole)])


def as_lists(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column of lists, of one text each where it has plain ones; none is null."""
    import pyarrow as pa

    if is_lists(column):
        return column.fill_null([]) if column.null_count else column
    cells = [[text] if text else [] for text in column.to_pylist()]
    return pa.chunked_array([pa.array(cells, pa.list_(pa.string()))])


def arrow_text(table: pa.Table, seen: Seen, titles: bool = True) -> pa.Table:
    """Return an Arrow table with every column of plain values or of lists, without the others."""
    import pyarrow as pa
    import pyarrow.types as kinds

    columns: dict[str, Any] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = column.type.value_type if kinds.is_dictionary(column.type) else column.type
        items = kind.value_type if kinds.is_list(kind) else None
        plain = items and not kinds.is_nested(items) and "string" not in str(items)
        if "binary" in str(kind) or (plain and max(lengths(column), default=0) > MAX_TEXTS):
            seen.left_out[name] = VECTORS if plain else f"values of type {kind}"
        elif kinds.is_nested(kind):
            columns[name] = text_array([_cell(name, v, seen, titles) for v in column.to_pylist()])
        else:
            try:
                columns[name] = column.cast(pa.string())
            except pa.ArrowException:  # no text, or 2 GiB of it in a block
                seen.left_out[name] = f"values of type {kind}"
    return pa.table(columns)
