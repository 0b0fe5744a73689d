"""The suites by the contract of the core; ``cse eval`` scores them with baselines beside."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from cse import TABLE_SUFFIXES, table_name
from cse_core.errors import CseError, collect_errors
from cse_core.suites import DevSet, Encode, Progress, Suite, SuiteFiles, SuiteScore
from cse_evaluation.collection_files import DEV_SPLITS, find_collections, is_collection
from cse_evaluation.collections import Collection, read_collection
from cse_evaluation.documents import DocumentSet, is_document_file, read_documents
from cse_evaluation.labelled import (
    PARTS,
    TRANSFER_TASKS,
    LongTexts,
    Task,
    is_labelled_file,
    read_tasks,
)
from cse_evaluation.pairs import PairSet, pairs_from_rows, read_pairs
from cse_evaluation.published import find_published
from cse_evaluation.ranking import CollectionDevSet, score_collection
from cse_evaluation.retrieval import DocumentDevSet, score_documents
from cse_evaluation.sts import STS_TESTS, PairDevSet, score_pairs
from cse_evaluation.transfer import score_tasks

DOCS = "docs"
"""The subfolder of the data folder that holds documents, some of them labelled."""
STS_DEVS = ("stsb.dev", "sickr.dev")


def locate_files(names: Sequence[str], below: str, folder: Path) -> dict[str, Path | None]:
    """Locate each named table in a folder or its subfolder ``below``, None if nowhere.

    Where a set stands in several formats, the first of ``TABLE_SUFFIXES`` is taken.
    """
    files: dict[str, Path | None] = {}
    for name in names:
        paths = (
            place / (name + end) for place in (folder, folder / below) for end in TABLE_SUFFIXES
        )
        files[name] = next((path for path in paths if path.is_file()), None)
    return files


def locate_tables(places: Sequence[Path], fits: Callable[[Path], bool], nothing: str) -> SuiteFiles:
    """Look through folders for tables that fit; one that is broken hides none of the others.

    Where one name stands there several times, the first place and the first of ``TABLE_SUFFIXES``
    whose table fits is taken, and the rest is not looked at. A folder that is not there holds
    nothing. Where no table fits, what is missing is called ``nothing``.
    """
    files: dict[str, Path | None] = {}
    broken: list[CseError] = []
    for place in places:
        paths = place.iterdir() if place.is_dir() else ()
        tables = [(table_name(path), end, path) for path in paths if (end := _preference(path))]
        for name, _, path in sorted(tables):
            if name in files or not path.is_file():
                continue
            with collect_errors(broken):
                if fits(path):
                    files[name] = path
    return SuiteFiles(files or {nothing: None}, tuple(broken))


def _preference(path: Path) -> list[int]:
    """Return the place of a file's ending among ``TABLE_SUFFIXES``, none where it has another."""
    return [n for n, end in enumerate(TABLE_SUFFIXES) if path.name.lower().endswith(end)][:1]


class Graded(Suite):
    """Graded pairs in files of known names, in the folder or one below it."""

    names: ClassVar[tuple[str, ...]]
    below: ClassVar[str]

    def locate(self, folder: Path) -> SuiteFiles:
        """Locate each file."""
        return SuiteFiles(locate_files(self.names, self.below, folder))

    def read(self, files: Mapping[str, Path]) -> list[PairSet]:
        """Return the sets of pairs."""
        return [read_pairs(path, name) for name, path in files.items()]

    def score(self, encode: Encode, read: Any, progress: Progress) -> Sequence[SuiteScore]:
        """Return Spearman's correlation of each set, and their mean."""
        return score_pairs(encode, read)


class Sts(Graded):
    """STS12-16, STS-B, SICK-R."""

    names, below = (*STS_TESTS, *STS_DEVS), "sts"

    def locate(self, folder: Path) -> SuiteFiles:
        """Locate each set: its table, or the files of its publisher, as SentEval keeps them."""
        tables = super().locate(folder).files
        published = find_published(folder) if None in tables.values() else {}
        return SuiteFiles({name: path or published.get(name) for name, path in tables.items()})

    def read_dev(self, path: str | os.PathLike[str]) -> DevSet:
        """Return a file of graded pairs as a dev set."""
        return PairDevSet.of(read_pairs(path))

    def dev_of_pairs(self, name: str, rows: Sequence[Mapping[str, Any]]) -> DevSet:
        """Return the graded pairs of a data set as a dev set."""
        return PairDevSet.of(pairs_from_rows(name, rows))


class Chinese(Graded):
    """STS-B translated to Chinese, and SimCLUE's pairs labelled 0 or 1."""

    names, below = ("cstsb.test", "cstsb.dev", "simclue.test", "simclue.dev"), "chinese"


class Labelled(Suite):
    """Labelled texts, of which tasks are made.

    Attributes:
        long_texts: What becomes of texts longer than the model takes.
    """

    long_texts: ClassVar[LongTexts]

    def read(self, files: Mapping[str, Path]) -> list[Task]:
        """Return the tasks."""
        return read_tasks(list(files.values()))

    def score(self, encode: Encode, read: Any, progress: Progress) -> Sequence[SuiteScore]:
        """Return the accuracy of each task, and the mean of transfer tasks."""
        return score_tasks(encode, read, progress=progress)


class Classify(Labelled):
    """Every table with a label and a text."""

    option, long_texts = "labelled", "slice"

    def locate(self, folder: Path) -> SuiteFiles:
        """Locate the files of labelled texts: in the folder and its subfolder ``docs``.

        If there is a subfolder ``classify``, only in that.
        """
        inner = folder / "classify"
        places = (inner,) if inner.is_dir() else (folder / DOCS, folder)
        return locate_tables(places, is_labelled_file, "any labelled texts")


class Transfer(Labelled):
    """The seven transfer tasks.

    ``mr.tsv.gz`` is a task without a split, ``sst2.train.tsv.gz`` and ``sst2.test.tsv.gz`` (and
    ``sst2.dev.tsv.gz``) one with; they stand in the folder or in its subfolder ``transfer``.
    """

    long_texts = "cut"

    def locate(self, folder: Path) -> SuiteFiles:
        """Locate the files of each whole task; an incomplete task is None."""
        files: dict[str, Path | None] = {}
        for task in TRANSFER_TASKS:
            names = (task, *(f"{task}.{part}" for part in PARTS))
            tables = locate_files(names, "transfer", folder)
            whole = tables.pop(task)
            parts = {name: path for name, path in tables.items() if path is not None}
            lacking = [name for name in (f"{task}.train", f"{task}.test") if name not in parts]
            if not lacking:
                files.update(parts)
            elif whole is not None or not parts:
                files[task] = whole
            else:
                files[f"{task} (no {lacking[0]})"] = None
        return SuiteFiles(files)


class Retrieval(Suite):
    """Every file of documents with titles."""

    option = "documents"

    def locate(self, folder: Path) -> SuiteFiles:
        """Locate the files of documents."""
        return locate_tables((folder / DOCS, folder), is_document_file, "any documents with titles")

    def read(self, files: Mapping[str, Path]) -> list[DocumentSet]:
        """Return the sets of documents."""
        return [read_documents(path) for path in files.values()]

    def score(self, encode: Encode, read: Any, progress: Progress) -> Sequence[SuiteScore]:
        """Return the recall of titles on each set."""
        return [score_documents(encode, part, progress=progress) for part in read]

    def read_dev(self, path: str | os.PathLike[str]) -> DevSet | None:
        """Return a file of documents as a dev set."""
        return DocumentDevSet.of(read_documents(path)) if is_document_file(path) else None


class Collections(Suite):
    """Every test collection: documents, queries and judgements."""

    option = "collections"

    def locate(self, folder: Path) -> SuiteFiles:
        """Locate the collections: the folder, or folders in it or in ``retrieval``."""
        hits = find_collections(folder / "retrieval") | find_collections(folder)
        return SuiteFiles(hits or {"any test collection": None})

    def read(self, files: Mapping[str, Path]) -> list[Collection]:
        """Return the collections."""
        return [read_collection(path) for path in files.values()]

    def score(self, encode: Encode, read: Any, progress: Progress) -> Sequence[SuiteScore]:
        """Return nDCG@10, recall, MRR@10 and MAP of each collection."""
        return [score_collection(encode, part, progress=progress) for part in read]

    def read_dev(self, path: str | os.PathLike[str]) -> DevSet | None:
        """Return a collection's folder, or a file of judgements in one, as a dev set."""
        if not is_collection(path):
            return None
        return CollectionDevSet.of(read_collection(path, DEV_SPLITS))
