"""Which column of a file is the text, which the positive, and so on."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from cse_core.data.tables import Reading
from cse_core.errors import CseError
from cse_core.records import CORE_VIEWS, ColumnType, ViewSpec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_GROUPS: tuple[dict[str, str], ...] = (
    {"text": "sent0", "positive": "sent1", "negative": "hard_neg"},
    {"text": "sent0", "positive": "sent1"},
    {"text": "anchor"}, {"text": "sentence1", "positive": "sentence2"},
    {"text": "premise", "positive": "hypothesis"},
    {"text": "query", "positive": "answer"}, {"text": "question", "positive": "answer"},
)  # fmt: skip
_TEXT_NAMES = (
    *("sentence", "sentence1", "sent0", "anchor", "premise", "query", "question"),
    *("content", "body", "en"),
)
_DOCUMENT_NAMES = ("document_id", "doc_id", "docid", "article_id")
_GRADES = frozenset(
    {"label", "labels", "gold_label", "score", "similarity", "similarity_score", "entailment"}
)
_HEADER = re.compile(r"[\w.-]+( [\w.-]+){0,2}")
_LONG_UNSPACED = 6
"""A name in a script without spaces has at most so many characters."""
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u3005\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # Japanese kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"  # Han
)
"""A letter of a script that is written without spaces between words."""


def match_columns(
    names: Sequence[str], mapping: Mapping[str, str], reading: Reading
) -> dict[str, str]:
    """Find the core's columns among those of a file.

    A column named in ``data.columns`` comes first, then a column of the very name, then, where
    ``data.columns`` says nothing, the usual names of triplet, pair and parallel files. The second
    sentence of a pair is not a positive where a column of scores or labels stands beside it.

    ``mapping`` is ``data.columns``. Returned is the name of the core -> name in the file, the
    core's own first; a column that the core has no name for keeps its own.

    Raises:
        CseError: Column ``text``, or one of ``data.columns``, is missing.
    """
    sources: dict[str, str] = {}
    for target, source in mapping.items():
        if source in names:
            sources[target] = source
        elif target in names:
            sources[target] = target
        else:
            what = f"no column {source}, which data.columns.{target} names"
            raise CseError(what, where=reading.name, hint=f"its columns: {listed(names)}")
    for name in ("text", *reading.encoded, "document", "title"):
        if name not in sources and name in names:
            sources[name] = name
    lowered = {name.strip().lower(): name for name in reversed(names)}
    guessed = _guess(lowered, sources, reading, pairs=not mapping)
    if "text" not in sources and "text" not in guessed and len(names) == 1:
        name = names[0]
        long = len(name) > _LONG_UNSPACED and lacks_word_spaces(names)
        if reading.from_header and (long or not _HEADER.fullmatch(name)):
            what = "the first line is not a header with a column text"
            hint = "add a header line, or name the file .txt: one text per line"
            raise CseError(what, where=reading.name, value=name[:60], hint=hint)
        guessed["text"] = name
    if guessed:
        shown = ", ".join(f"{target} = {source}" for target, source in guessed.items())
        reading.say(f"{shown} (to change it: --set data.columns.text=NAME)")
    sources.update(guessed)
    if "text" not in sources:
        raise CseError(
            "no column text",
            where=reading.name,
            hint=f"its columns: {listed(names)}; say which one holds the texts: "
            "--set data.columns.text=NAME",
        )
    taken = {*sources, *sources.values()}
    sources.update({name: name for name in names if name not in taken})
    return ordered(sources, reading.views)


def _guess(
    lowered: Mapping[str, str], sources: Mapping[str, str], reading: Reading, *, pairs: bool
) -> dict[str, str]:
    """Return columns found by their usual names; nothing that ``sources`` has already."""
    guessed: dict[str, str] = {}
    used = set(sources.values())

    def take(target: str, name: str) -> None:
        if target not in sources and lowered[name] not in used:
            guessed[target] = lowered[name]

    if document := next((name for name in _DOCUMENT_NAMES if name in lowered), None):
        take("document", document)
    if "text" in sources:
        return guessed
    group = next((group for group in _GROUPS if set(group.values()) <= set(lowered)), None)
    if pairs and group:
        graded = sorted(_GRADES & set(lowered))
        for target, name in group.items():
            if target == "positive" and graded and "negative" not in group:
                reading.say(
                    f"{name} is not taken as positive, since {graded[0]} grades the pairs "
                    f"(otherwise: --set data.columns.positive={name})"
                )
            else:
                take(target, name)
        return guessed
    for name in ("text", *_TEXT_NAMES):
        if name in lowered and "text" not in guessed:
            take("text", name)
    for view in reading.views if pairs and "text" in guessed else ():
        if view.find is not None:
            found = view.find(list(lowered), guessed["text"].lower())
            if found is not None:
                take(view.column, found)
    return guessed


def listed(names: Sequence[str]) -> str:
    """Return the names for a message, long ones cut."""
    short = [name if len(name) <= 40 else name[:39] + "…" for name in names[:20]]
    return ", ".join(short) + (", …" if len(names) > 20 else "") or "none"


def ordered(sources: Mapping[str, str], views: Sequence[ViewSpec] = CORE_VIEWS) -> dict[str, str]:
    """Return the columns with ``text`` and those of views first."""
    known = dict.fromkeys(["text", *(view.column for view in views), "document", "title"])
    first = [name for name in known if name in sources]
    return {name: sources[name] for name in (*first, *(n for n in sources if n not in first))}


def read_values(
    texts: Sequence[str], kind: ColumnType, *, column: str, where: str, rows: Sequence[int] = ()
) -> NDArray[np.generic]:
    """Return the values of a column: float64, or int64 numbers and labels.

    A label's number is its place among the sorted labels. ``rows`` are where the texts stand, for
    errors; by default in order.

    Raises:
        CseError: A text is not a finite number, or not an integer.
    """
    import numpy as np

    if kind == "label":
        numbers = {label: number for number, label in enumerate(sorted(set(texts)))}
        return np.array([numbers[text] for text in texts], dtype=np.int64)
    read: type[int] | type[float] = int if kind == "int" else float
    found: list[float] = []
    for place, text in enumerate(texts):
        try:
            value = read(text)
            if not math.isfinite(value):
                raise ValueError
        except ValueError:
            noun = "integer" if kind == "int" else "finite number"
            raise CseError(
                f"column {column} must hold {noun}s",
                where=f"{where}, row {(rows[place] if len(rows) else place) + 1}",
                value=text,
                hint=f"correct it, or take another column: --set data.columns.{column}=NAME",
            ) from None
        found.append(value)
    return np.array(found, dtype=np.int64 if kind == "int" else np.float64)


def lacks_word_spaces(texts: Iterable[str]) -> bool:
    """Tell whether more than half of the letters are of scripts without spaces (Han, kana, …)."""
    letters = found = 0
    for text in texts:
        letters += sum(map(str.isalpha, text))
        found += len(_UNSPACED.findall(text))
    return 2 * found > letters
