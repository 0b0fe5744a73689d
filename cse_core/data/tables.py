"""Rows of any source as Arrow tables with columns of text, and notes on what was left out.

Articles are unfolded into sentences, paragraphs or documents. Two forms are read:
``{"id", "title", "sections": [[heading, [sentence, …]], …]}`` and
``{"id", "title", "paras": [[sentence, …], …]}``; other plain fields go with every row.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from cse_core.errors import CseError
from cse_core.records import CORE_VIEWS, ViewSpec

if TYPE_CHECKING:
    import pyarrow as pa

Unit = Literal["sentence", "paragraph", "document"]
BODIES = ("sections", "paras")
"""Fields that make a JSON object an article."""
ROWS = 20_000
"""Rows of a table that a reader yields, about."""
_HALF = re.compile("[\ud800-\udfff]")


@dataclass
class Reading:
    """How a source is read, and what happens meanwhile.

    Attributes:
        name: The source as the user gave it, for messages.
        batch: Rows of a table that a reader yields, about; small where only a look is wanted.
        blank: Lines and rows without any text, which are dropped.
        incomplete: Rows dropped because a text that is encoded beside ``text`` is blank.
        articles: Whether it held articles, whose rows depend on the unit.
        left_out: Columns that hold no plain values -> what they hold.
        lacking: Names that some objects have -> the place of the first that has not.
        from_header: Whether the columns' names are the first line of a text file.
        columns: Name of the core -> name in the source, the core's own first.
        messages: What a user should know, a line each.
        commit: That of a data set of the hub, where it is known.
        views: The views whose columns it may have.
    """

    name: str
    batch: int = ROWS
    blank: int = 0
    incomplete: int = 0
    articles: bool = False
    left_out: dict[str, str] = field(default_factory=dict)
    lacking: dict[str, str] = field(default_factory=dict)
    from_header: bool = False
    columns: dict[str, str] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)
    commit: str = ""
    views: Sequence[ViewSpec] = CORE_VIEWS

    @property
    def encoded(self) -> tuple[str, ...]:
        """Return the columns that are encoded beside ``text``: a row lacking one is incomplete."""
        return tuple(dict.fromkeys(view.column for view in self.views if view.column != "text"))

    def say(self, message: str) -> None:
        """Note what a user should know of the source."""
        self.messages.append(f"{self.name}: {message}")


def text_table(columns: Mapping[str, Sequence[str | None]]) -> pa.Table:
    """Return columns of text as an Arrow table."""
    import pyarrow as pa

    return pa.table({name: pa.array(column, pa.string()) for name, column in columns.items()})


def record_tables(
    records: Iterable[tuple[str, Any]], unit: Unit, reading: Reading
) -> Iterator[Any]:
    """Yield objects with named values, each behind its place, as Arrow tables of text.

    Articles are unfolded into units.

    Raises:
        CseError: An object has no names, or holds text that UTF-8 has no form for.
    """
    rows = _plain_rows(records, unit, reading)
    known: dict[str, None] = {}
    first = ""
    while batch := list(islice(rows, reading.batch)):
        names = dict.fromkeys(name for _, row in batch for name in row)
        columns = {name: [row.get(name) for _, row in batch] for name in names}
        for name in names.keys() - known.keys() if known else ():
            reading.lacking[name] = first
        known |= names
        first = first or batch[0][0]
        for name in known.keys() - reading.lacking.keys():
            if None in columns.get(name, (None,)):
                lacks = (place for place, row in batch if name not in row)
                reading.lacking.update((name, place) for place in islice(lacks, 1))
        try:
            yield text_table(columns)
        except UnicodeEncodeError as error:
            joined = ((place, "".join(filter(None, row.values()))) for place, row in batch)
            raise CseError(
                "half a surrogate pair, which is not valid text",
                where=next(place for place, text in joined if has_lone_surrogate(text)),
                hint="write the whole character or remove it",
            ) from error


def _plain_rows(
    records: Iterable[tuple[str, Any]], unit: Unit, reading: Reading
) -> Iterator[tuple[str, dict[str, str | None]]]:
    """Yield rows of texts with their places."""
    left_out = reading.left_out
    for number, (place, record) in enumerate(records, 1):
        as_object(place, record)
        if is_article(record):
            reading.articles = True
            parts: Iterable[dict[str, Any]] = unfold(record, unit, number=number, where=place)
        else:
            parts = (record,)
        for part in parts:
            row: dict[str, str | None] = {}
            for name, value in part.items():
                if isinstance(value, str):
                    row[name] = value
                elif isinstance(value, list | dict):
                    left_out[name] = "lists" if isinstance(value, list) else "objects"
                else:
                    row[name] = _plain_text(value)
            yield place, row


def is_article(record: Mapping[str, Any]) -> bool:
    """Tell whether a JSON object is an article."""
    return any(isinstance(record.get(field), list) for field in BODIES)


def unfold(
    record: Mapping[str, Any], unit: Unit, *, number: int, where: str
) -> Iterator[dict[str, Any]]:
    """Yield the rows of an article: text, document (``number`` where it has none), other fields.

    Raises:
        CseError: Its sections or paragraphs have another form.
    """
    paragraphs = list(_paragraphs(record, where))
    shared = {
        name: value
        for name, value in record.items()
        if name not in (*BODIES, "id", "text", "document")
    }
    shared["document"] = record.get("id", record.get("document", number))
    if unit == "sentence":
        texts = [sentence for paragraph in paragraphs for sentence in paragraph]
    elif unit == "paragraph":
        texts = [_joined(paragraph) for paragraph in paragraphs if paragraph]
    else:
        texts = [_joined(sentence for paragraph in paragraphs for sentence in paragraph)]
    for text in texts:
        yield {"text": text, **shared}


def _joined(sentences: Iterable[str]) -> str:
    return " ".join(text for sentence in sentences if (text := sentence.strip()))


def _paragraphs(record: Mapping[str, Any], where: str) -> Iterator[list[str]]:
    field = "sections" if isinstance(record.get("sections"), list) else "paras"
    for value in record[field]:
        paragraph = value
        if field == "sections":
            if not (isinstance(value, list) and len(value) == 2):
                raise _shape_error(field, "[heading, [sentence, …]]", value, where)
            paragraph = value[1]
        if not isinstance(paragraph, list) or not all(isinstance(s, str) for s in paragraph):
            raise _shape_error(field, "a list of sentences", paragraph, where)
        yield paragraph


def _shape_error(field: str, due: str, value: Any, where: str) -> CseError:
    shown = str(value)
    return CseError(
        f"{field}: must be {due}",
        where=where,
        value=shown if len(shown) <= 60 else shown[:59] + "…",
        hint='an article is {"id", "title", "sections": [[heading, [sentence, …]], …]} '
        'or {"id", "title", "paras": [[sentence, …], …]}',
    )


def as_object(place: str, value: Any) -> dict[str, Any]:
    """Return a JSON value that is an object.

    Raises:
        CseError: If it is none.
    """
    if not isinstance(value, dict):
        what = "not an object with named values"
        hint = 'write one object per line: {"text": "…"}'
        raise CseError(what, where=place, value=str(value)[:40], hint=hint)
    return value


def _plain_text(value: object) -> str | None:
    """Return a number or a truth value as text; None and NaN are no text."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def has_lone_surrogate(text: str) -> bool:
    """Tell whether a text holds half a surrogate pair, for which UTF-8 has no form."""
    return _HALF.search(text) is not None


def arrow_text(table: pa.Table, reading: Reading) -> pa.Table:
    """Return an Arrow table with every plain column as text and without the others."""
    import pyarrow as pa
    import pyarrow.types as kinds

    columns: dict[str, Any] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = column.type.value_type if kinds.is_dictionary(column.type) else column.type
        if kinds.is_nested(kind) or kinds.is_binary(kind) or kinds.is_large_binary(kind):
            reading.left_out[name] = f"values of type {kind}"
        else:
            columns[name] = column.cast(pa.string())
    return pa.table(columns)
