"""Classification tasks: which files make one, and where those of the suites are looked for."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from cse_cli.plugins.data_folder import DATA_VARIABLE
from cse_cli.texts.tables import SUFFIXES, stem
from cse_core.errors import CseError
from cse_evaluation.document_suite import BELOW
from cse_evaluation.labelled import LabelledSet, is_labelled_file, read_labelled
from cse_evaluation.suite import existing_folder, locate_files
from cse_evaluation.tables import Located, locate_tables

TRANSFER_TASKS = ("mr", "cr", "subj", "mpqa", "sst2", "trec", "mrpc")
"""The seven transfer tasks whose mean the papers report."""
PARTS = ("train", "dev", "test")
DEV_JOINS_TRAIN = ("trec", "mrpc")
"""Tasks that SentEval has no dev part of: one that is there is training data."""
_OTHER_NAMES_OF_DEV = ("valid", "validation", "val")


@dataclass(frozen=True)
class Task:
    """Texts to classify.

    Attributes:
        name: ``mr``, ``yelp``.
        train: The training part, or the whole task without a test part.
        dev: The part that chooses the regularisation; None where folds of train do.
        test: The test part; None where the score is by cross-validation.
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
        """Return whether rows are pairs of sentences."""
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


@dataclass(frozen=True)
class Tasks:
    """The tasks of a suite that are there.

    Attributes:
        folder: Where they are.
        tasks: The tasks read.
        missing: Names of those that are not there, with the part that lacks where one is there.
        left_out: Names of the tables there that hold no labelled texts.
    """

    folder: Path
    tasks: tuple[Task, ...]
    missing: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def find_transfer(data_dir: str | os.PathLike[str] | None = None) -> Tasks:
    """Read what there is of the transfer tasks.

    ``mr.tsv.gz`` is a task without a split, ``sst2.train.tsv.gz`` and ``sst2.test.tsv.gz`` (and
    ``sst2.dev.tsv.gz``) one with; they stand in the folder itself or in its subfolder
    ``transfer``.

    Args:
        data_dir: As for ``data_folder``.

    Raises:
        CseError: If the folder is not there or holds no task, or a file is broken.
    """
    what = "the transfer tasks"
    folder = existing_folder(data_dir, what, "transfer")
    found = locate_transfer(data_dir)
    tasks, missing = [], []
    for name in TRANSFER_TASKS:
        files = {part: found[f"{name}.{part}"] for part in PARTS if f"{name}.{part}" in found}
        lacking = [part for part in ("train", "test") if part not in files]
        if not lacking:
            tasks.append(_task(name, files))
        elif name in found:
            tasks.append(_task(name, {"train": found[name]}))
        else:
            missing.append(f"{name} (no {name}.{lacking[0]})" if files else name)
    if not tasks:
        raise CseError(
            "no transfer task is here or in its subfolder transfer "
            f"(such as mr{SUFFIXES[0]}, or sst2.train{SUFFIXES[0]} and sst2.test{SUFFIXES[0]})",
            where=str(folder),
            hint="`cse data fetch transfer` brings them; or name the folder of "
            f"{what} with --data-dir DIR or {DATA_VARIABLE}",
        )
    return Tasks(tasks[0].train.path.parent, tuple(tasks), tuple(missing))


def locate_transfer(data_dir: str | os.PathLike[str] | None = None) -> dict[str, Path]:
    """Return where each file of the transfer tasks is that there is, without reading any."""
    names = [name + end for name in TRANSFER_TASKS for end in ("", *(f".{part}" for part in PARTS))]
    found = locate_files(names, "transfer", data_dir)
    return {name: path for name, path in found.items() if path is not None}


def find_classification(data_dir: str | os.PathLike[str] | None = None) -> Tasks:
    """Read every task of a folder and its subfolder ``docs``, or of ``classify`` alone.

    Of the tables there those are read whose columns hold a label and a text.

    Raises:
        CseError: If the folder is not there or holds no such table, a part lacks, or a file is
            broken.
    """
    folder = existing_folder(data_dir, "the labelled texts")
    found = locate_classification(folder)
    if found.broken:
        raise found.broken[0]
    *below, folder = _classification_places(folder)
    if not found.files:
        raise CseError(
            f"no file of labelled texts is here{f' or in its subfolder {BELOW}' if below else ''} "
            f"(such as yelp.train{SUFFIXES[0]} and yelp.test{SUFFIXES[0]})",
            where=str(folder),
            hint="name their folder with --data-dir DIR, or the files with --labelled FILE",
        )
    tasks = {_name_and_part(name)[0] for name in found.files}
    # A part of a task that lacks the columns is not a file of another kind: reading it says so.
    parts = [path for path in found.others if _is_part(path, tasks)]
    files = sorted([*found.files.values(), *parts], key=stem)
    left_out = tuple(path.name for path in found.others if path not in parts)
    return Tasks(folder, tuple(read_tasks(files)), left_out=left_out)


def locate_classification(folder: Path) -> Located:
    """Return where the files of labelled texts are, of which only the columns are read."""
    return locate_tables(_classification_places(folder), is_labelled_file)


def _classification_places(folder: Path) -> tuple[Path, ...]:
    own = folder / "classify"
    return (own,) if os.path.isdir(own) else (folder / BELOW, folder)


def read_tasks(files: Sequence[str | os.PathLike[str]]) -> list[Task]:
    """Make tasks of files by their names: ``NAME.train``, ``NAME.test`` and ``NAME.dev``, or one.

    Raises:
        CseError: If a part lacks or is there twice, or a file is broken.
    """
    grouped: dict[str, dict[str, str | os.PathLike[str]]] = {}
    for file in files:
        name, part = _name_and_part(stem(file))
        parts = grouped.setdefault(name, {})
        if part in parts:
            raise CseError(
                f"has the same name {stem(file)} as {parts[part]}",
                where=os.fspath(file),
                hint="name one of them, or rename it",
            )
        parts[part] = file
    return [_task(name, _complete(name, parts)) for name, parts in grouped.items()]


def _name_and_part(name: str) -> tuple[str, str]:
    head, _, last = name.rpartition(".")
    part = "dev" if last.lower() in _OTHER_NAMES_OF_DEV else last.lower()
    return (head, part) if head and part in PARTS else (name, "")


def _is_part(path: Path, tasks: Iterable[str]) -> bool:
    name, part = _name_and_part(stem(path))
    return bool(part) and name in tasks


def _complete(
    name: str, parts: Mapping[str, str | os.PathLike[str]]
) -> Mapping[str, str | os.PathLike[str]]:
    """Return the parts of a task, a single file as its training part."""
    file = next(iter(parts.values()))
    if set(parts) == {""}:
        return {"train": file}
    lacking = [part for part in ("train", "test") if part not in parts]
    if "" in parts or lacking:
        what = f"{name}.{lacking[0]} is missing" if lacking else f"so is {parts['']}"
        raise CseError(
            f"one part of the task {name}, but {what}",
            where=os.fspath(file),
            hint=f"name {name}.train and {name}.test, or one file {name} for cross-validation",
        )
    return parts


def _task(name: str, files: Mapping[str, str | os.PathLike[str]]) -> Task:
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
                f"the label {unknown!r} stands in no row of {train.path.name}",
                where=str(part.path),
            )
