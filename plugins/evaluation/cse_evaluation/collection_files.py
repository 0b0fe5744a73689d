"""Files of a test collection: which of a folder's are documents, queries and judgements.

A table may be in parts, ``corpus-00000.jsonl`` or ``corpus/corpus-00000-of-00002.parquet``, as on
the Hugging Face hub.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cse import TABLE_SUFFIXES
from cse_core.errors import CseError

DEV_SPLITS = ("dev", "validation", "val", "test", "train")
"""Which judgements of a collection are the dev set of a training, the preferred ones first."""
_PACKED = ("", ".gz", ".zst")
_DOCUMENTS = ("corpus", "documents", "docs", "collection", "passages")
_QUERIES = ("queries", "topics", "query", "topic")
_QRELS = ("qrels", "qrel", "judgements", "judgments")
_TEXTS = (*TABLE_SUFFIXES, *(f".{end}{packed}" for end in ("txt", "trec") for packed in _PACKED))
_TOPICS = (*_TEXTS, *(f".xml{packed}" for packed in _PACKED))
_QRELS_ENDS = (*_TEXTS, *(f".{end}{packed}" for end in _QRELS for packed in _PACKED))
_PART = re.compile(r"(?:(.*?)[-_.])?(0\d{3,}|\d+(?=-of-))(?:-of-(\d+))?(\.\D.*)")


@dataclass(frozen=True)
class CollectionFiles:
    """The files of a collection; those of one table in several parts in their order.

    Attributes:
        qrels: Judgements by split.
    """

    documents: tuple[Path, ...]
    queries: tuple[Path, ...]
    qrels: Mapping[str, tuple[Path, ...]]


def find_files(folder: Path) -> CollectionFiles | None:
    """Return the files of a collection's folder; None where one of the three kinds is missing."""
    if not folder.is_dir():
        return None
    documents, queries = _documents_of(folder), _queries_of(folder)
    qrels = _qrels_of(folder)
    return CollectionFiles(documents, queries, qrels) if documents and queries and qrels else None


def files_in(folder: Path) -> list[Path]:
    """Return the files of a collection's folder that may be read."""
    files = find_files(folder)
    if files is None:
        return []
    return [*files.documents, *files.queries, *(p for paths in files.qrels.values() for p in paths)]


def find_collections(folder: Path) -> dict[str, Path]:
    """Return the collections of a folder by name: itself, or its subfolders that are one."""
    if find_files(folder) is not None:
        return {folder.resolve().name: folder}
    inside = sorted(folder.iterdir()) if folder.is_dir() else []
    return {path.name: path for path in inside if find_files(path) is not None}


def is_collection(path: str | os.PathLike[str]) -> bool:
    """Tell whether a path is a collection's folder, or a file of judgements in one.

    A folder that lacks a part of one passes: ``read_collection`` says what it lacks.
    """
    place = Path(path).expanduser()
    if place.is_dir():
        return bool(_documents_of(place) or _queries_of(place) or _qrels_of(place))
    files = find_files(folder_of(place)) if place.is_file() else None
    return files is not None and split_of(files, place) is not None


def folder_of(qrels: Path) -> Path:
    """Return the folder of a collection that has a file of judgements."""
    inner = qrels.parent.name in ("qrels", "data") and find_files(qrels.parent) is None
    return qrels.parent.parent if inner else qrels.parent


def split_of(files: CollectionFiles, qrels: Path) -> str | None:
    """Return the split of a file of judgements, None where it is none of the collection's."""
    splits = files.qrels.items()
    return next((s for s, paths in splits if any(p.samefile(qrels) for p in paths)), None)


def no_collection(folder: Path) -> CseError:
    """Return the error of a folder that is not a test collection."""
    lacking = "no such folder"
    if folder.is_dir():
        kinds = {"documents (corpus.jsonl)": _documents_of(folder),
                 "queries (queries.jsonl)": _queries_of(folder),
                 "judgements (qrels/test.tsv)": _qrels_of(folder)}  # fmt: skip
        missing = [kind for kind, known in kinds.items() if not known]
        lacking = f"is not a test collection: it has no {' and no '.join(missing)}"
    hint = "name a folder of BEIR's layout, or of TREC's: documents.tsv, topics.tsv, qrels.txt"
    return CseError(lacking, where=str(folder), hint=hint)


def check_parts(paths: Sequence[Path]) -> None:
    """Check that no part of a table is missing, and that none is there in two formats.

    Raises:
        CseError: If parts are missing, or files of a folder have several endings.
    """
    ends = {match[4] if (match := _PART.fullmatch(p.name)) else "".join(p.suffixes) for p in paths}
    if len(ends) > 1:
        what = f"its files are {' and '.join(sorted(ends))}"
        raise CseError(what, where=str(paths[0].parent), hint="keep those of one format")
    for name, parts in _tables(paths).items():
        matches = [match for part in parts if (match := _PART.fullmatch(part.name))]
        if not matches:
            continue
        numbers, count = {int(match[2]) for match in matches}, int(matches[0][3] or 0)
        last = max(numbers)
        first = int(last == count) if count else min(1, *numbers)
        expected = range(first, first + count if count else last + 1)
        if missing := [number for number in expected if number not in numbers]:
            what = f"part {missing[0]} of {name} is not there"
            raise CseError(what, where=str(paths[0].parent), hint="fetch all of its parts")


def _documents_of(folder: Path) -> tuple[Path, ...]:
    return _first(folder, _DOCUMENTS, _TEXTS)


def _queries_of(folder: Path) -> tuple[Path, ...]:
    return _first(folder, _QUERIES, _TOPICS)


def _first(folder: Path, stems: Sequence[str], ends: tuple[str, ...]) -> tuple[Path, ...]:
    """Return ``corpus.jsonl``, the files of ``corpus/``, or one table like ``cran.documents.tsv``.

    Of the names of a folder only the first is one, as on the hub: corpus and queries.
    """
    paths = (folder / f"{stem}{end}" for stem in stems for end in ends)
    exact = next((path for path in paths if path.is_file()), None)
    if exact is not None:
        return (exact,)
    if inside := _with_ends(folder / stems[0], ends):
        return tuple(inside)
    named = [path for path in _with_ends(folder, ends) if not _words(path).isdisjoint(stems)]
    return tuple(named) if len(_tables(named)) == 1 else ()


def _qrels_of(folder: Path) -> dict[str, tuple[Path, ...]]:
    """Return the files of judgements by split: ``qrels/dev.tsv``, ``qrels.txt``, ``a.qrels``.

    One without a split's name is ``test``; several have their own names. Where the hub keeps
    documents in ``corpus/`` and has no ``qrels/``, its judgements are in ``data/``.
    """
    files: dict[str, tuple[Path, ...]] = {}
    unnamed: list[tuple[Path, ...]] = []
    hub = "data" if (folder / "corpus").is_dir() and not (folder / "qrels").is_dir() else "qrels"
    above = [p for p in _with_ends(folder, _QRELS_ENDS) if not _words(p).isdisjoint(_QRELS)]
    for paths in _tables([*_with_ends(folder / hub, _QRELS_ENDS), *above]).values():
        split = next((split for split in DEV_SPLITS if split in _words(paths[0])), None)
        if split is None or split in files:
            unnamed.append(paths)
        else:
            files[split] = paths
    if len(unnamed) == 1 and "test" not in files:
        return files | {"test": unnamed[0]}
    for paths in unnamed:
        name = paths[0].name
        stem = name.partition(".")[0]
        files[name if stem in files else stem] = paths
    return files


def _with_ends(folder: Path, ends: tuple[str, ...]) -> list[Path]:
    """Return the files of a folder that have one of the endings; none where it is not there."""
    inside = sorted(folder.iterdir()) if folder.is_dir() else []
    return [path for path in inside if path.name.lower().endswith(ends) and path.is_file()]


def _tables(paths: Iterable[Path]) -> dict[str, tuple[Path, ...]]:
    """Return tables by their path without the number of a part, each with its parts in order."""
    tables: dict[str, tuple[Path, ...]] = {}
    for path in paths:
        match = _PART.fullmatch(path.name)
        name = f"{match[1] or path.parent.name}{match[4]}" if match else path.name
        key = name if match else str(path)
        tables[key] = (*tables.get(key, ()), path)
    return tables


def _words(path: Path) -> set[str]:
    """Return the words of a file's name."""
    return {*re.split("[-_.]", path.name.lower())}
