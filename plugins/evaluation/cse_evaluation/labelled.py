"""Labelled texts and labelled pairs of texts, and the tasks that files of them make."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from cse import ARTICLE_COLUMNS, article_text, read_table, table_name
from cse_core.errors import CseError
from cse_evaluation.pairs import SENTENCE_COLUMNS, text_of

LABEL_COLUMNS = ("label", "labels", "class", "category")
"""Names of the label column, the preferred ones first; upper or lower case."""
TEXT_COLUMNS = ("text", "sentence", "review", "content")
"""Names of the text column, the preferred ones first; upper or lower case."""
TRANSFER_TASKS = ("mr", "cr", "subj", "mpqa", "sst2", "trec", "mrpc")
"""The seven transfer tasks whose mean the papers report."""
PARTS = ("train", "dev", "test")
DEV_JOINS_TRAIN = ("trec", "mrpc")
"""Tasks that SentEval has no dev part of: one that is there is training data."""
LongTexts = Literal["cut", "slice"]
"""What becomes of texts longer than a model takes."""
_OTHER_NAMES_OF_DEV = ("valid", "validation", "val")


@dataclass(frozen=True)
class LabelledSet:
    """A file of labelled texts or pairs; its name is without endings, ``sst2.test``.

    ``texts`` has the first sentences of pairs; ``seconds`` is None where rows are single texts.
    """

    name: str
    path: Path
    labels: tuple[str, ...]
    texts: tuple[str, ...]
    seconds: tuple[str, ...] | None = None

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.labels)

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """The texts of each row, without its label."""
        return list(zip(self.texts, self.seconds or self.texts, strict=True))


@dataclass(frozen=True)
class Task:
    """Texts to classify, ``mr`` or ``yelp``.

    Without a test part ``train`` is the whole task, and the score is by cross-validation. Without a
    dev part folds of ``train`` choose the regularisation.
    """

    name: str
    train: LabelledSet
    dev: LabelledSet | None = None
    test: LabelledSet | None = None

    @property
    def parts(self) -> tuple[LabelledSet, ...]:
        """Return the parts that are there, in the order train, dev, test."""
        return tuple(part for part in (self.train, self.dev, self.test) if part is not None)

    @property
    def pairs(self) -> bool:
        """Whether rows are pairs of sentences."""
        return self.train.seconds is not None

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Return the label of each row of all parts."""
        return tuple(label for part in self.parts for label in part.labels)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """Return the text, or first sentence, of each row of all parts."""
        return tuple(text for part in self.parts for text in part.texts)

    @cached_property
    def seconds(self) -> tuple[str, ...]:
        """Return the second sentence of each row of all parts; none for single texts."""
        return tuple(text for part in self.parts for text in part.seconds or ())

    @property
    def note(self) -> str:
        """What of the test part is trained on too, in one line; empty where nothing is."""
        if self.test is None:
            return ""
        trained = {*self.train.rows}
        both = sum(row in trained for row in self.test.rows)
        share = f"{both:,} of {len(self.test):,}"
        return f"{self.name}: {share} test texts also train the classifier" if both else ""

    @cached_property
    def fingerprint(self) -> str:
        """Return 12 hexadecimal digits that differ where any text, label or part differs."""
        digest = hashlib.sha256()
        for part in self.parts:
            rows = zip(part.labels, part.texts, part.seconds or part.texts, strict=True)
            for row in rows:
                digest.update(repr(row).encode())
            digest.update(b"end of part")
        return digest.hexdigest()[:12]


def _columns(columns: Sequence[str]) -> tuple[str | None, tuple[str, ...], bool]:
    """Return the label column, those of the text or of both sentences, and if articles may be."""
    names = {column.lower(): column for column in reversed(columns)}
    label = next((names[name] for name in LABEL_COLUMNS if name in names), None)
    one = ((name,) for name in TEXT_COLUMNS)
    texts = next((heads for heads in (*SENTENCE_COLUMNS, *one) if names.keys() >= set(heads)), ())
    articles = any(column in names for column in ARTICLE_COLUMNS)
    return label, tuple(names[name] for name in texts), articles


def is_labelled_file(path: str | os.PathLike[str]) -> bool:
    """Tell whether a table file holds labelled texts, pairs or articles, by its columns."""
    label, texts, articles = _columns(read_table(path)[0])
    return label is not None and (bool(texts) or articles)


def read_labelled(path: str | os.PathLike[str]) -> LabelledSet:
    """Read labelled texts from a tsv, csv, jsonl or parquet file, gzipped or not.

    The columns may stand in any order, under any name of ``LABEL_COLUMNS`` and ``TEXT_COLUMNS``
    (or of ``SENTENCE_COLUMNS`` for pairs); others are ignored. Articles (``paras``, ``sections``)
    are one text each.
    """
    where = os.fspath(path)
    columns, rows = read_table(path)
    label, heads, articles = _columns(columns)
    if label is None or not (heads or articles):
        shown = ", ".join(repr(column[:40]) for column in columns[:8])
        raise CseError(
            f"no column {'label' if label is None else 'text'}; the columns are {shown}"
            + (", …" if len(columns) > 8 else ""),
            where=where,
            hint="it needs columns label and text (sentence1 and sentence2 for pairs)",
        )
    labels: list[str] = []
    texts: list[tuple[str, ...]] = []
    for place, row in rows:
        labels.append(_label(row, label, place))
        article = article_text(row, place) if articles and len(heads) < 2 else None
        if article is not None:
            texts.append((text_of({"text": article}, "text", place),))
        elif heads:
            texts.append(tuple(text_of(row, column, place) for column in heads))
        else:
            raise CseError(f"no text and none of {', '.join(ARTICLE_COLUMNS)}", where=place)
    if not labels:
        raise CseError("no rows below the header", where=where)
    first, *second = zip(*texts, strict=True)
    return LabelledSet(
        table_name(path), Path(path), tuple(labels), first, second[0] if second else None
    )


def _label(row: Mapping[str, Any], column: str, place: str) -> str:
    value = row.get(column)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    label = str(value).strip() if isinstance(value, str | int) else ""
    if not label:
        raise CseError(
            f"no label in the column {column!r}",
            where=place,
            value=value if value not in (None, "") else None,
            hint="a label is a word or an integer",
        )
    return label


def read_tasks(files: Sequence[str | os.PathLike[str]]) -> list[Task]:
    """Make tasks of files by their names: ``NAME.train``, ``NAME.test``, ``NAME.dev``, or one."""
    tasks: dict[str, dict[str, str | os.PathLike[str]]] = {}
    for file in files:
        name, part = name_and_part(table_name(file))
        parts = tasks.setdefault(name, {})
        if part in parts:
            raise CseError(
                f"has the same name {table_name(file)} as {parts[part]}",
                where=os.fspath(file),
                hint="name one of them, or rename it",
            )
        parts[part] = file
    return [_task(name, parts) for name, parts in tasks.items()]


def name_and_part(name: str) -> tuple[str, str]:
    """Return the task of a file ``NAME.train`` and its part, which is empty for a whole task."""
    head, _, last = name.rpartition(".")
    part = "dev" if last.lower() in _OTHER_NAMES_OF_DEV else last.lower()
    return (head, part) if head and part in PARTS else (name, "")


def _task(name: str, files: Mapping[str, str | os.PathLike[str]]) -> Task:
    lacking = [part for part in ("train", "test") if part not in files]
    if set(files) == {""}:
        files = {"train": files[""]}
    elif "" in files or lacking:
        what = f"{name}.{lacking[0]} is missing" if lacking else f"so is {files['']}"
        raise CseError(
            f"one part of the task {name}, but {what}",
            where=os.fspath(next(iter(files.values()))),
            hint=f"name {name}.train and {name}.test, or one file {name} for cross-validation",
        )
    parts = {part: read_labelled(files[part]) for part in PARTS if part in files}
    if len({part.seconds is None for part in parts.values()}) > 1:
        raise CseError(
            "some parts have one text per row, some two",
            where=", ".join(part.path.name for part in parts.values()),
        )
    train, dev, test = parts["train"], parts.get("dev"), parts.get("test")
    if dev is not None and name in DEV_JOINS_TRAIN:
        train, dev = _joined(train, dev), None
    _check_labels(train, [part for part in (dev, test) if part is not None], folded=test is None)
    return Task(name, train, dev, test)


def _joined(first: LabelledSet, second: LabelledSet) -> LabelledSet:
    seconds = None
    if first.seconds is not None and second.seconds is not None:
        seconds = first.seconds + second.seconds
    labels, texts = first.labels + second.labels, first.texts + second.texts
    return LabelledSet(first.name, first.path, labels, texts, seconds)


def _check_labels(train: LabelledSet, others: Iterable[LabelledSet], folded: bool) -> None:
    """Refuse labels that nothing can be learned or chosen from."""
    counts = Counter(train.labels)
    common = counts.most_common(2)
    if len(common) < 2:
        raise CseError(f"every row has the label {common[0][0]!r}", where=str(train.path))
    least = 3 if folded else 2
    if common[1][1] < least:
        raise CseError(
            f"{len(counts)} labels in {len(train)} rows: two labels need {least} rows each",
            where=str(train.path),
            hint="name a file whose label column holds classes",
        )
    for part in others:
        unknown = next((label for label in part.labels if label not in counts), None)
        if unknown is not None:
            raise CseError(
                f"the label {unknown!r} stands in no row of {train.path.name}", where=str(part.path)
            )
