"""Which column of a file is the text, which the positive, and so on."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cse_core.errors import CseError
from cse_core.hookspecs import CORE_VIEWS
from cse_core.records import ColumnType, ViewSpec
from cse_core.texts import Seen
from cse_core.words import lacks_word_spaces
from cse_defaults.texts.tables import NUMBER, is_lists, text_array

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray


def plain(name: str) -> str:
    """Return a column's name without case and separators, as known names are compared."""
    return re.sub(r"[\W_]", "", name).lower()


_FILE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
KNOWN_COLUMNS: dict[str, list[str]] = _FILE["names"]
"""What columns are called in files, by their names here; the first wins."""
PARTNERS: dict[str, list[str]] = _FILE["partners"]
"""What is the positive beside one name of the text, where neither label nor score stands there."""
SETS: dict[str, str] = _FILE["sets"]
"""Columns that hold lists of a text, its positive, and then more of what stands here."""
ColumnKind = Literal["texts", "words", "lists", "numbers", "labels", "ids"]
"""What the values of a column look like; some texts at least are of more than a word."""
_PARTNERS = {plain(name): others for name, others in PARTNERS.items()}
_TEXTS = {*map(plain, KNOWN_COLUMNS["text"])}
_GRADES = [*map(plain, (*KNOWN_COLUMNS["label"], *KNOWN_COLUMNS["score"]))]
_AMBIGUOUS = {plain(name) for name in (*KNOWN_COLUMNS["positive"], *sum(PARTNERS.values(), []))}
_AMBIGUOUS &= {*_GRADES, *map(plain, KNOWN_COLUMNS["document"])}
"""Names of texts of a pair that are those of labels or document numbers too: cells tell."""
_TEXTUAL = ("texts", "words")
_MANY = 10
"""Values from which on some that recur are labels."""
_WORDS = 5
"""Words of a label, on average, less than."""
_ONE_A_ROW = "write one text per row"
_SAMPLE = 1000
"""Values of a column that tell what it holds."""
_WRITTEN = re.compile(
    r"""\[\s*['"{].*['"}]\s*\]|\[[\d\s.,e+-]*\]|b(['"]).*\1"""
    r"""|\(('[^']*'|"[^"]*"),.*\)|\{('[^']*'|"[^"]*")(,.*)?\}""",
    re.DOTALL,
)
"""A list, a tuple, a set or bytes, as Python or JSON write them."""
_HEADER = re.compile(r"[\w.-]+( [\w.-]+){0,2}")


def kind_of(values: Sequence[str]) -> ColumnKind:
    """Guess the kind of values: labels recur, ids are single words with more than letters."""
    if values and all(map(NUMBER.fullmatch, values)):
        return "numbers"
    distinct, many = len(set(values)), len(values) >= _MANY
    if 10 * sum(" " in value for value in values) > len(values) or lacks_word_spaces(values):
        short = sum(value.count(" ") for value in values) < _WORDS * len(values)
        return "labels" if many and short and distinct * 10 <= len(values) else "texts"
    if many and distinct * 2 <= len(values):
        return "labels"
    return "words" if 2 * sum(map(str.isalpha, values)) >= len(values) else "ids"


def sampled(column: pa.ChunkedArray) -> list[str]:
    """Return values of a column that are not blank, spread evenly over it, or those of lists."""
    rows = range(0, len(column), max(1, len(column) // _SAMPLE))
    cells = (column[row].as_py() for row in rows)
    return [
        *filter(None, chain.from_iterable(c or () for c in cells) if is_lists(column) else cells)
    ]


def check_texts(column: pa.ChunkedArray, name: str, where: str) -> None:
    """Refuse a column most of whose cells are lists or bytes that are written as texts."""
    values = [] if is_lists(column) else sampled(column)
    written = [value for value in values if _WRITTEN.fullmatch(value)]
    if 2 * len(written) > len(values):
        what = f"column {name} holds lists or bytes that are written as texts"
        hint = "write jsonl or parquet, which hold lists of texts, and bytes as the texts they are"
        raise CseError(what, where=where, value=written[0], hint=hint)


def match_columns(
    names: Sequence[str],
    asked: Mapping[str, str],
    where: str,
    seen: Seen,
    views: Sequence[ViewSpec] = CORE_VIEWS,
    kind: Callable[[str], ColumnKind] = lambda name: "texts",
) -> dict[str, str]:
    """Find the core's columns among those of a file.

    A column named in ``data.columns`` comes first, and must be there; then those of ``rules``, by
    their names, whatever they hold. The only column of a file is the text if it looks like texts.
    A column ``text`` must be found; lists are none, nor are numbers or ids of another name.

    ``asked`` is ``data.columns``, ``kind`` tells what a column holds. Returned is the name of the
    core -> name in the file, the core's own first; a column that the core has no name for keeps
    its own.
    """
    columns: dict[str, str] = {}
    for target, source in asked.items():
        if source not in names and target not in names:
            what = f"no column {source}, which data.columns.{target} names"
            raise CseError(what, where=where, hint=f"its columns: {listed(names)}")
        columns[target] = source if source in names else target
    by_plain = {plain(name): name for name in reversed(names)}

    def called(known: Iterable[str]) -> list[str]:
        matches = [by_plain[name] for name in map(plain, known) if name in by_plain]
        return [name for name in matches if name not in columns.values()]

    def paired(known: Iterable[str]) -> list[str]:
        texts = (*_TEXTUAL, "lists")
        return [n for n in called(known) if plain(n) not in _AMBIGUOUS or kind(n) in texts]

    def partners(text: str) -> list[str]:
        return paired(_PARTNERS.get(plain(text), ()))

    def rules() -> Iterator[tuple[str, Sequence[str]]]:
        """Yield columns of the core, and those of the file that may be it, the best first."""
        for name in ("text", *(view.column for view in views)):
            yield name, [name] * (name in names)
        texts = called(KNOWN_COLUMNS["text"])
        yield "text", sorted(texts, key=lambda name: plain(name) != "text" and not partners(name))
        text = columns.get("text", "").strip()
        for target in ("positive", "negative") if not asked else ():
            yield target, paired(KNOWN_COLUMNS[target])
        for target in ("label", "score"):
            yield target, called(KNOWN_COLUMNS[target])
        if not asked and "positive" not in columns:
            graded = [name for name in ("label", "score") if name in columns]
            graded = [name for name in graded if kind(columns[name]) != "lists"]
            beside = partners(text)
            if beside and graded and "negative" not in columns:
                seen.grades = graded[0]
                seen.messages.append(
                    f"{columns[graded[0]]} grades the pairs, so only a loss that reads it takes "
                    f"{beside[0]}; --set data.columns.positive={beside[0]} takes every pair as a "
                    "positive"
                )
            yield "positive", beside
        lowered = {name.strip().lower(): name for name in reversed(names)}
        for view in views if not asked else ():
            if view.find and (column := view.find([*lowered], text.lower())):
                yield view.column, [lowered[column]]
        for target in ("document", "title"):
            yield target, called(KNOWN_COLUMNS[target])

    for target, candidates in rules():  # which look at what is matched so far
        if candidates and target not in columns:
            columns[target] = candidates[0]
    beside = map(by_plain.get, map(plain, _PARTNERS.get(plain(columns.get("text", "")), ())))
    if "positive" not in columns and not asked and (pair := next(filter(None, beside), None)):
        hint = f"otherwise: --set data.columns.positive={pair}"
        seen.messages.append(f"{pair} is not the positive: it holds {kind(pair)} ({hint})")
    if text := columns.get("text"):
        named = text in ("text", asked.get("text"))
        if kind(text) in (("lists",) if named else ("lists", "numbers", "ids")):
            del columns["text"]
    if "text" not in columns and len(names) == 1:
        name = names[0]
        if seen.from_header and not _HEADER.fullmatch(name):
            what = "the first line is not a header with a column text"
            hint = "add a header line, or name the file .txt: one text per line"
            raise CseError(what, where=where, value=name[:60], hint=hint)
        if kind(name) in _TEXTUAL and not seen.left_out:
            columns["text"] = name
    guessed = {to: name for to, name in columns.items() if to not in (*asked, name)}
    if shown := ", ".join(f"{to} = {name}" for to, name in guessed.items()):
        seen.messages.append(f"{shown} (to change it: --set data.columns.text=NAME)")
    if "text" not in columns:
        items = [f"{n} ({kind(n)})" if kind(n) not in _TEXTUAL else n for n in names]
        items += [f"{name} ({what})" for name, what in seen.left_out.items()]
        other = any(kind(name) != "lists" for name in names)
        do = "say which one holds the texts: --set data.columns.text=NAME" if other else _ONE_A_ROW
        raise CseError("no column text", where=where, hint=f"its columns: {listed(items)}; {do}")
    taken = {*columns, *columns.values()}
    columns.update({name: name for name in names if name not in taken})
    return ordered(columns, views)


def check_named(asked: Mapping[str, str], found: Sequence[Mapping[str, str]]) -> None:
    """Refuse ``data.columns`` that name a column which none of the sources has."""
    for target, name in asked.items():
        if not any(columns.get(target) == name for columns in found):
            known = dict.fromkeys(name for columns in found for name in columns.values())
            what, hint = f"no file has a column {name}", f"the columns are: {listed(list(known))}"
            raise CseError(what, where=f"data.columns.{target}", hint=hint)


def listed(names: Sequence[str]) -> str:
    """Return the names for a message, long ones cut."""
    short = [name if len(name) <= 40 else name[:39] + "…" for name in names[:20]]
    return ", ".join(short) + (", …" if len(names) > 20 else "") or "none"


def ordered(sources: Mapping[str, str], views: Sequence[ViewSpec] = CORE_VIEWS) -> dict[str, str]:
    """Return the columns with ``text`` and those of views first."""
    known = dict.fromkeys(["text", *(view.column for view in views), "document", "title"])
    first = [name for name in known if name in sources]
    return {name: sources[name] for name in (*first, *(n for n in sources if n not in first))}


def gathered(table: pa.Table, where: str, seen: Seen) -> pa.Table:
    """Return a table whose numbered columns are one of lists, and whose sets are columns.

    ``negative_1`` and ``negative_2`` become ``negative``; ``texts`` a text, its positive and
    negatives, ``set`` a text and its positives. Sets whose texts are graded are refused: none is
    known to be a positive.
    """
    import pyarrow as pa

    columns = dict(zip(table.column_names, table.columns, strict=True))
    by_plain = {plain(name): name for name in columns}
    for stem in map(plain, (*KNOWN_COLUMNS["positive"], *KNOWN_COLUMNS["negative"])):
        numbered = re.compile(rf"{stem}\d{{0,2}}")  # more digits are a year
        names = [name for key, name in by_plain.items() if numbered.fullmatch(key)]
        names = [name for name in names if not is_lists(columns[name])]
        if names[1:] or (names and stem not in by_plain):
            cells = zip(*(columns.pop(name).to_pylist() for name in names), strict=True)
            columns[stem] = text_array([[*filter(None, row)] for row in cells])
            seen.messages.append(f"{stem} = {', '.join(names)}")
    form = next(filter(by_plain.__contains__, SETS), None)
    if form and is_lists(columns[by_plain[form]]) and _TEXTS.isdisjoint(by_plain):
        name = by_plain[form]
        if graded := [by_plain[key] for key in _GRADES if key in by_plain]:
            raise CseError(
                f"column {name} holds lists of texts that {graded[0]} grades, so which are "
                "positives is not known",
                where=where,
                hint="write the pairs to train on as columns text and positive; graded pairs "
                "are for --dev, as sentence1, sentence2 and score",
            )
        rows = [row or [] for row in columns.pop(name).to_pylist()]
        cut = 2 if SETS[form] == "negative" else None
        columns["text"] = text_array(["".join(row[:1]) for row in rows])
        columns["positive"] = text_array([row[1:cut] for row in rows])
        seen.messages.append(f"text, positive = {name}")
        if cut and any(negatives := [row[cut:] for row in rows]):
            columns["negative"] = text_array(negatives)
            seen.messages.append(f"negative = {name}")
    return pa.table(columns)


def read_values(
    texts: Sequence[str], kind: ColumnType, *, column: str, where: str, rows: Sequence[int] = ()
) -> NDArray[np.generic]:
    """Return the values of a column: float64, or int64 numbers and labels.

    A label's number is its place among the sorted labels. ``rows`` are where the texts stand, for
    errors; by default in order.
    """
    import numpy as np

    if kind == "label":
        numbers = {label: number for number, label in enumerate(sorted(set(texts)))}
        return np.fromiter((numbers[text] for text in texts), np.int64, len(texts))
    dtype = np.dtype(np.int64 if kind == "int" else np.float64)
    for place, text in enumerate(texts):
        try:
            parsed = int(text) if kind == "int" else float(text)
        except ValueError:
            parsed = math.nan
        if not math.isfinite(parsed) or (kind == "int" and abs(parsed) >= 2**63):
            noun = "integer" if kind == "int" else "finite number"
            raise CseError(
                f"column {column} must hold {noun}s",
                where=f"{where}, row {(rows[place] if len(rows) else place) + 1}",
                value=text,
                hint=f"correct it, or take another column: --set data.columns.{column}=NAME",
            )
    return np.fromiter(map(dtype.type, texts), dtype, len(texts))
