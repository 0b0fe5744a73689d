"""Test collections: documents, queries and judgements of which documents answer which query.

Two layouts are read, each file plain or compressed:

- BEIR's (Thakur et al. 2021): ``corpus.jsonl``, ``queries.jsonl``, ``qrels/test.tsv``.
- TREC's: documents as a table or jsonl, topics as a table, jsonl or ``<top>`` blocks, and
  judgements ``qid 0 docid relevance``.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from cse import TABLE_SUFFIXES, Bm25, read_lines, read_table, units_of
from cse_core.errors import CseError

Judgements = Mapping[str, Mapping[str, int]]
"""By the id of a query, how relevant documents are by id; 0 is not relevant."""

SPLITS = ("test", "dev", "train")
"""Which judgements of a collection are scored, the preferred ones first."""
DEV_SPLITS = ("dev", "validation", "val", "test", "train")
"""The same where a collection is the dev set of a training."""
MAX_RELEVANCE = 1000
"""The highest grade: trec_eval's memory and time grow with it."""
_PACKED = ("", ".gz", ".zst")
_DOCUMENTS = ("corpus", "documents", "docs", "collection", "passages")
_QUERIES = ("queries", "topics", "query", "topic")
_QRELS = ("qrels", "qrel", "judgements", "judgments")
_TEXTS = (*TABLE_SUFFIXES, *(f".{end}{packed}" for end in ("txt", "trec") for packed in _PACKED))
_QRELS_ENDS = tuple(f".{end}{packed}" for end in _QRELS for packed in _PACKED)
_IDS = ("_id", "id", "docid", "docno", "doc_id", "doc-id", "document_id", "pid", "corpus-id",
        "corpus_id", "qid", "query_id", "query-id", "topic_id", "topic", "number",
        "num")  # fmt: skip
_DOCUMENT_TEXT = ("text", "contents", "content", "body", "abstract", "passage", "document")
_QUERY_TEXT = ("text", "query", "question", "title", "contents")
_QRELS_COLUMNS = (
    ("query-id", "query_id", "qid", "query", "topic", "topic_id"),
    ("corpus-id", "corpus_id", "docid", "docno", "doc_id", "doc-id", "pid", "document_id"),
    ("score", "relevance", "rel", "label", "relevancy", "judgement", "judgment"),
)
_TAG = re.compile(r"<(/?)(\w+)>")
_HALF = re.compile("[\ud800-\udfff]")
_LABEL = re.compile(r"^\s*(?:Number|Topic)\s*:\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Collection:
    """Documents, and queries whose answers among them people judged.

    Attributes:
        name: ``cranfield.test``: its folder, and the split of its judgements.
        documents: Title and text of each document, by id.
        queries: Text of each query that has a relevant document, by id.
        counts: What was left out or stands twice, by what it is; no zeros.
    """

    name: str
    documents: Mapping[str, str]
    queries: Mapping[str, str]
    judgements: Judgements
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def split(self) -> str:
        """The split of the judgements."""
        return self.name.rpartition(".")[2]

    @cached_property
    def texts(self) -> list[str]:
        """Return the distinct texts of the documents."""
        return list(dict.fromkeys(self.documents.values()))

    @cached_property
    def words(self) -> Bm25:
        """Return the words of the distinct texts."""
        return Bm25.of(self.texts, units_of(self.queries.values())[0])

    @cached_property
    def own_documents(self) -> frozenset[str]:
        """Ids of queries that are documents themselves, as in ArguAna, and not judged relevant.

        They have the id of a document, and its text. BEIR leaves them out of their own ranking.
        """
        return frozenset(
            query
            for query, text in self.queries.items()
            if self.documents.get(query, "").endswith(text)
            and self.judgements[query].get(query, 0) <= 0
        )

    @property
    def note(self) -> str:
        """The counts of what was left out, in one line; empty where nothing was."""
        said = [f"{count:,} {what}" for what, count in self.counts.items()]
        return f"{self.name}: {'; '.join(said)}" if said else ""

    @cached_property
    def fingerprint(self) -> str:
        """Return 12 hexadecimal digits that differ where a text, an id or a judgement differs."""
        digest = hashlib.sha256()
        for texts in (self.documents, self.queries, self.judgements):
            for key, value in texts.items():
                shown = value if isinstance(value, str) else sorted(value.items())
                digest.update(f"{key}\0{shown}\0".encode())
            digest.update(b"\1")
        return digest.hexdigest()[:12]


@dataclass(frozen=True)
class _Files:
    documents: Path
    queries: Path
    qrels: Mapping[str, Path]


def find_files(folder: Path) -> _Files | None:
    """Return the files of a collection's folder; None where one of the three kinds is missing."""
    if not folder.is_dir():
        return None
    documents, queries = _first(folder, _DOCUMENTS), _first(folder, _QUERIES)
    qrels = _qrels_of(folder)
    return _Files(documents, queries, qrels) if documents and queries and qrels else None


def files_in(folder: Path) -> list[Path]:
    """Return the files of a collection's folder that may be read."""
    files = find_files(folder)
    return [] if files is None else [files.documents, files.queries, *files.qrels.values()]


def _first(folder: Path, stems: Sequence[str]) -> Path | None:
    """Return ``corpus.jsonl``, or the one file such as ``cran.documents.tsv``."""
    paths = (folder / f"{stem}{end}" for stem in stems for end in _TEXTS)
    exact = next((path for path in paths if path.is_file()), None)
    tables = (path for path in folder.iterdir() if path.name.lower().endswith(_TEXTS))
    named = [path for path in tables if not _words(path).isdisjoint(stems)]
    return named[0] if exact is None and len(named) == 1 else exact


def _qrels_of(folder: Path) -> dict[str, Path]:
    """Return the files of judgements by split: ``qrels/dev.tsv``, ``qrels.txt``, ``a.qrels``.

    One without a split's name is ``test``; several have their own names.
    """
    files: dict[str, Path] = {}
    unnamed: list[Path] = []
    inside = sorted((folder / "qrels").iterdir()) if (folder / "qrels").is_dir() else []
    for path in (*inside, *sorted(folder.iterdir())):
        words = _words(path)
        table = path.is_file() and path.name.lower().endswith((*_TEXTS, *_QRELS_ENDS))
        if table and (path.parent != folder or not words.isdisjoint(_QRELS)):
            split = next((split for split in DEV_SPLITS if split in words), None)
            if split is None or split in files:
                unnamed.append(path)
            else:
                files[split] = path
    if len(unnamed) == 1 and "test" not in files:
        return files | {"test": unnamed[0]}
    for path in unnamed:
        stem = path.name.partition(".")[0]
        files[path.name if stem in files else stem] = path
    return files


def _words(path: Path) -> set[str]:
    """Return the words of a file's name."""
    return {*re.split("[-_.]", path.name.lower())}


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
        return bool(_first(place, _DOCUMENTS) or _first(place, _QUERIES) or _qrels_of(place))
    above = place.parent.parent if place.parent.name == "qrels" else place.parent
    files = find_files(above) if place.is_file() else None
    return files is not None and any(file.samefile(place) for file in files.qrels.values())


def read_collection(path: str | os.PathLike[str], splits: Sequence[str] = SPLITS) -> Collection:
    """Read a test collection from its folder, or from one of its files of judgements.

    Of a folder the judgements of the first split that is there are taken. Ids are compared as text.
    Where an id stands twice in a file, or a pair of query and document, its last row counts, as in
    BEIR's reader. Relevant documents that the collection does not have count as not found, as in
    trec_eval.
    """
    folder, qrels = Path(path).expanduser(), None
    if folder.is_file():
        qrels, folder = folder, folder.parent
        folder = folder.parent if folder.name == "qrels" else folder
    files = find_files(folder)
    if files is None:
        raise no_collection(folder)
    if qrels is not None:
        split = next((part for part, file in files.qrels.items() if file.samefile(qrels)), "test")
    elif (first := next((part for part in splits if part in files.qrels), None)) is not None:
        split = first
    else:
        what = f"has several files of judgements: {', '.join(files.qrels)}"
        hint = f"name one of them: {next(iter(files.qrels.values()))}"
        raise CseError(what, where=str(folder), hint=hint)
    counts: dict[str, int] = {}
    others = [file.name for part, file in files.qrels.items() if part not in DEV_SPLITS]
    if qrels is None and others:
        counts[f"files of judgements are not scored ({', '.join(others)})"] = len(others)
    documents = _texts(files.documents, _DOCUMENT_TEXT, "document", counts)
    queries = _texts(files.queries, _QUERY_TEXT, "query", counts)
    judged = _judgements(qrels or files.qrels[split], counts)
    kept = {qid: judged[qid] for qid in queries if any(n > 0 for n in judged.get(qid, {}).values())}
    for what, count in (
        ("queries without judgements left out", len(queries.keys() - judged.keys())),
        ("queries without a relevant document left out",
         len((queries.keys() & judged.keys()) - kept.keys())),
        ("judged queries that are not there", len(judged.keys() - queries.keys())),
        ("judgements of documents that are not there, which count as not found",
         sum(doc not in documents for row in kept.values() for doc in row)),
    ):  # fmt: skip
        counts |= {what: count} if count else {}
    where = str(qrels or files.qrels[split])
    if not kept:
        hint = "the ids of its first two columns must be those of the queries and documents"
        raise CseError("no query has a relevant document", where=where, hint=hint)
    if not any(doc in documents for row in kept.values() for doc in row):
        what = f"none of its documents is in {files.documents.name}"
        raise CseError(what, where=where, hint="compare the ids of both files")
    blank = next((qid for qid in kept if not queries[qid]), None)
    if blank is not None:
        raise CseError("a query without a text", where=str(files.queries), value=blank)
    name = f"{folder.resolve().name}.{split}"
    made = Collection(name, documents, {qid: queries[qid] for qid in kept}, kept, counts)
    if made.own_documents:
        what = "queries that are documents themselves, left out of their own ranking"
        counts[what] = len(made.own_documents)
    return made


def no_collection(folder: Path) -> CseError:
    """Return the error of a folder that is not a test collection."""
    lacking = "no such folder"
    if folder.is_dir():
        kinds = {"documents (corpus.jsonl)": _first(folder, _DOCUMENTS),
                 "queries (queries.jsonl)": _first(folder, _QUERIES),
                 "judgements (qrels/test.tsv)": _qrels_of(folder)}  # fmt: skip
        missing = [kind for kind, known in kinds.items() if not known]
        lacking = f"is not a test collection: it has no {' and no '.join(missing)}"
    hint = "name a folder of BEIR's layout, or of TREC's: documents.tsv, topics.tsv, qrels.txt"
    return CseError(lacking, where=str(folder), hint=hint)


def _texts(path: Path, columns: Sequence[str], kind: str, counts: dict[str, int]) -> dict[str, str]:
    """Return texts by id; a document's title stands before its text."""
    texts: dict[str, str] = {}
    again = 0
    for place, row in _rows(path, columns):
        key = _id(next((row[name] for name in _IDS if name in row), None), place)
        text = next((row[name] for name in columns if name in row), None)
        title = row.get("title") if kind == "document" else None
        parts = [str(p) if isinstance(p, int | float) else p for p in (title, text)]
        if any(part is not None and not isinstance(part, str) for part in parts):
            raise CseError("title and text must be texts", where=place, value=text or title)
        if text is None and title is None:
            hint = f"its column is one of {', '.join(columns)}"
            raise CseError(f"no text of the {kind}", where=place, hint=hint)
        if any(part is not None and _HALF.search(part) for part in (key, *parts)):
            hint = "write the character itself, or both of its halves"
            raise CseError("holds half of a surrogate pair", where=place, hint=hint)
        again += key in texts
        texts[key] = " ".join(part.strip() for part in parts if part and part.strip())
    if not texts:
        raise CseError(f"no {kind} is in it", where=str(path))
    if again:
        plural = "documents" if kind == "document" else "queries"
        counts[f"{plural} whose id stands again further down, where the last counts"] = again
    return texts


def _rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield rows by lower-cased column; of tables without a header, id and text, or with title."""
    end = path.name.lower().removesuffix(".gz").removesuffix(".zst").rpartition(".")[2]
    first = next(read_lines(path), "") if end in ("tsv", "txt", "trec") else ""
    heads = [head.strip().lower() for head in first.split("\t")]
    if end in ("txt", "trec") and first.lstrip().startswith("<"):
        yield from _topics(path)
    elif not first or (not {*heads}.isdisjoint(_IDS) and not {*heads}.isdisjoint(columns)):
        if end in ("txt", "trec"):
            raise CseError("not a table", where=str(path), hint="name it *.tsv")
        for place, row in read_table(path)[1]:
            yield place, {name.strip().lower(): value for name, value in row.items()}
    else:
        for number, line in enumerate(read_lines(path), 1):
            cells = line.split("\t")
            place = f"{path}, line {number}"
            if len(cells) not in (2, 3) and line.strip():
                hint = "write ID, a tab and the text, or a header such as id, title, text"
                raise CseError(f"{len(cells)} columns and no header", where=place, hint=hint)
            if line.strip():
                yield place, dict(zip(("id", *("title", "text")[3 - len(cells) :]), cells,
                                      strict=True))  # fmt: skip


def _topics(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield number and title of the topics of a TREC file; their ends need not be tagged."""
    row: dict[str, str] = {}
    tag = ""
    for number, line in enumerate(read_lines(path), 1):
        at = 0
        for mark in (*_TAG.finditer(line), None):
            if tag in ("num", "title"):
                row[tag] = f"{row.get(tag, '')} {line[at : mark.start() if mark else None]}"
            if mark is None:
                break
            at, tag = mark.end(), "" if mark[1] else mark[2].lower()
            if mark[2].lower() == "top" and row:
                yield (
                    f"{path}, line {number}",
                    {
                        "num": _LABEL.sub("", row.get("num", "")).strip(),
                        "text": " ".join(_LABEL.sub("", row.get("title", "")).split()),
                    },
                )
                row = {}


def _id(value: Any, place: str) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    key = str(value).strip() if isinstance(value, str | int) and value is not True else ""
    if not key or value is False:
        hint = f"its column is one of {', '.join(_IDS[:8])}; an id is a word or a number"
        raise CseError("no id", where=place, value=value, hint=hint)
    return key


def _judgements(path: Path, counts: dict[str, int]) -> dict[str, dict[str, int]]:
    kept: dict[str, dict[str, int]] = {}
    again = 0
    for place, (query, document, relevance) in _judged(path):
        judged, key = kept.setdefault(_id(query, place), {}), _id(document, place)
        try:
            number = float(relevance)
        except (TypeError, ValueError):
            number = 0.5
        if not number.is_integer() or abs(number) > MAX_RELEVANCE:
            what = f"relevance must be an integer, at most {MAX_RELEVANCE:,}"
            raise CseError(what, where=place, value=relevance)
        again += judged.get(key, number) != number
        judged[key] = int(number)
    if again:
        counts["judgements that contradict an earlier one, where the last counts"] = again
    return kept


def _judged(path: Path) -> Iterator[tuple[str, tuple[Any, Any, Any]]]:
    """Yield query, document and relevance, from a table or from lines of three or four words."""
    end = path.name.lower().removesuffix(".gz").removesuffix(".zst").rpartition(".")[2]
    lines = [] if end in ("parquet", "arrow", "jsonl") else [next(read_lines(path), "")]
    heads = re.split(r"[\t, ]+", lines[0].lower()) if lines else []
    headed = not {*heads}.isdisjoint(_QRELS_COLUMNS[0])
    if not lines or (headed and {"tsv": "\t", "csv": ","}.get(end, "\0") in lines[0]):
        for place, row in read_table(path)[1]:
            cells = {name.strip().lower(): value for name, value in row.items()}
            names = [next((n for n in known if n in cells), None) for known in _QRELS_COLUMNS]
            if None in names[:2]:
                hint = "its columns are query-id, corpus-id, score"
                raise CseError("names no query or no document", where=place, hint=hint)
            query, document, score = (None if name is None else cells[name] for name in names)
            yield place, (query, document, 1 if names[2] is None else score)
        return
    for number, line in enumerate(read_lines(path), 1):
        words = [word.strip() for word in line.split("\t" if "\t" in line else None)]
        if not any(words) or (number == 1 and headed):
            continue
        if len(words) not in (3, 4):
            hint = "write `query 0 document relevance`, or a header query-id, corpus-id, score"
            raise CseError(f"{len(words)} words", where=f"{path}, line {number}", hint=hint)
        yield f"{path}, line {number}", (words[0], words[-2], words[-1])
