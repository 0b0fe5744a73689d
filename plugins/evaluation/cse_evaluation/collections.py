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
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from cse import Bm25, read_lines, read_table, units_of
from cse_core.errors import CseError
from cse_evaluation.collection_files import (
    DEV_SPLITS,
    check_parts,
    find_files,
    folder_of,
    no_collection,
    split_of,
)

Judgements = Mapping[str, Mapping[str, int]]
"""By the id of a query, how relevant documents are by id; 0 is not relevant."""

SPLITS = ("test", "dev", "validation", "val", "train")
"""Which judgements of a collection are scored, the preferred ones first."""
MAX_RELEVANCE = 1000
"""The highest grade: trec_eval's memory and time grow with it."""
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

        They have the id of a document, and its text; where most of those that have the id also have
        the text, the others are taken for such too. BEIR leaves every query with the id of a
        document out of its own ranking, also where both are numbered from 1.
        """
        same = [
            q for q in self.queries if q in self.documents and self.judgements[q].get(q, 0) <= 0
        ]
        same_text = [q for q in same if self.documents[q].endswith(self.queries[q])]
        return frozenset(same if 2 * len(same_text) > len(same) else same_text)

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


def read_collection(path: str | os.PathLike[str], splits: Sequence[str] = SPLITS) -> Collection:
    """Read a test collection from its folder, or from one of its files of judgements.

    Of a folder the judgements of the first split that is there are taken. Ids are compared as text.
    Where an id stands twice in a file, or a pair of query and document, its last row counts, as in
    BEIR's reader. Relevant documents that the collection does not have count as not found, as in
    trec_eval.
    """
    place = Path(path).expanduser()
    folder = folder_of(place) if place.is_file() else place
    files = find_files(folder)
    if files is None:
        raise no_collection(folder)
    first = next((part for part in splits if part in files.qrels), None)
    split = split_of(files, place) if place.is_file() else first
    if split is None:
        what = f"has several files of judgements: {', '.join(files.qrels)}"
        hint = f"name one of them: {next(iter(files.qrels.values()))[0]}"
        raise CseError(what, where=str(folder), hint=hint)
    counts: dict[str, int] = {}
    others = [paths[0].name for part, paths in files.qrels.items() if part not in DEV_SPLITS]
    if not place.is_file() and others:
        counts[f"files of judgements are not scored ({', '.join(others)})"] = len(others)
    documents = _texts(files.documents, _DOCUMENT_TEXT, "document", counts)
    queries = _texts(files.queries, _QUERY_TEXT, "query", counts)
    qrels, where = files.qrels[split], str(files.qrels[split][0])
    judged = _with_known_ids(_judgements(qrels, counts), queries, documents, where, counts)
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
    if not kept:
        hint = "the ids of its first two columns must be those of the queries and documents"
        raise CseError("no query has a relevant document", where=where, hint=hint)
    if not any(doc in documents for row in kept.values() for doc in row):
        what = f"none of its documents is in {files.documents[0].name}"
        raise CseError(what, where=where, hint="compare the ids of both files")
    blank = next((qid for qid in kept if not queries[qid]), None)
    if blank is not None:
        raise CseError("a query without a text", where=str(files.queries[0]), value=blank)
    name = f"{folder.resolve().name}.{split}"
    made = Collection(name, documents, {qid: queries[qid] for qid in kept}, kept, counts)
    if made.own_documents:
        what = "queries that are documents themselves, left out of their own ranking"
        counts[what] = len(made.own_documents)
    return made


def _with_known_ids(
    judged: dict[str, dict[str, int]],
    queries: Mapping[str, str],
    documents: Mapping[str, str],
    where: str,
    counts: dict[str, int],
) -> dict[str, dict[str, int]]:
    """Return judgements whose ids are those of the texts where only leading zeros differ."""
    asked = _unpadded(judged, queries, where)
    answers = _unpadded({doc for row in judged.values() for doc in row}, documents, where)
    if padded := len(asked) + len(answers):
        counts["ids of judgements read without regard to leading zeros"] = padded
    return {
        asked.get(query, query): {answers.get(doc, doc): n for doc, n in row.items()}
        for query, row in judged.items()
    }


def _unpadded(
    judged: Set[str] | Mapping[str, Any], known: Mapping[str, str], where: str
) -> dict[str, str]:
    """Return the known id of each judged one that is the same number with other zeros before it."""
    if all(key in known for key in judged):
        return {}
    numbers: dict[str, list[str]] = {}
    for key in filter(str.isdecimal, known):
        numbers.setdefault(key.lstrip("0"), []).append(key)
    ids: dict[str, str] = {}
    given: set[str] = set()
    for key in (key for key in judged if key.isdecimal() and key not in known):
        matches = numbers.get(key.lstrip("0"), [])
        taken = not given.isdisjoint(matches) or any(match in judged for match in matches)
        if taken or len(matches) > 1:
            what = "ids that differ by leading zeros only"
            value = ", ".join((key, *matches))
            raise CseError(what, where=where, value=value, hint="write an id in one way")
        if matches:
            ids[key] = matches[0]
            given.add(matches[0])
    return ids


def _texts(
    paths: Sequence[Path], columns: Sequence[str], kind: str, counts: dict[str, int]
) -> dict[str, str]:
    """Return texts by id; a document's title stands before its text."""
    check_parts(paths)
    texts: dict[str, str] = {}
    again = 0
    heads = (*columns, "title") if kind == "document" else columns
    for place, row in chain.from_iterable(_rows(path, heads) for path in paths):
        key = _id(next((row[name] for name in _IDS if name in row), None), place)
        text = next((row[name] for name in columns if name in row), None)
        title = row.get("title") if kind == "document" else None
        title, text = (None if part != part else part for part in (title, text))  # NaN
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
        raise CseError(f"no {kind} is in it", where=str(paths[0]))
    if again:
        plural = "documents" if kind == "document" else "queries"
        counts[f"{plural} whose id stands again further down, where the last counts"] = again
    return texts


def _rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield rows by lower-cased column; of tables without a header, id and text, or with title."""
    end = path.name.lower().removesuffix(".gz").removesuffix(".zst").rpartition(".")[2]
    first = next(read_lines(path), "") if end in ("tsv", "txt", "trec") else ""
    heads = [head.strip().lower() for head in first.split("\t")]
    if end == "xml":
        yield from _xml_topics(path)
    elif end in ("txt", "trec") and first.lstrip().startswith("<"):
        yield from _topics(path)
    elif not first or (not {*heads}.isdisjoint(_IDS) and not {*heads}.isdisjoint(columns)):
        if end in ("txt", "trec"):
            raise CseError("not a table", where=str(path), hint="name it *.tsv")
        for place, row in read_table(path)[1]:
            yield place, {name.strip().lower(): value for name, value in row.items()}
    elif heads[0] in _IDS:
        hint = f"call one of them {', '.join(dict.fromkeys(columns))}"
        raise CseError("no column of texts", where=f"{path}, line 1", value=first, hint=hint)
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


def _xml_topics(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield number and text of ``<topic number="1">``, or of ``<top>`` with its number inside.

    Of TREC-COVID's three texts the question is taken, as BEIR does.
    """
    text = "\n".join(read_lines(path))
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise CseError("declares a document type", where=str(path), hint="remove <!DOCTYPE …>")
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise CseError(f"not XML: {error}", where=str(path)) from None
    for count, topic in enumerate((t for t in root.iter() if t.tag in ("topic", "top")), 1):
        fields = {part.tag.lower(): " ".join("".join(part.itertext()).split()) for part in topic}
        number = topic.get("number", fields.get("num", fields.get("number", "")))
        name = next((name for name in ("question", "query", "title") if fields.get(name)), "")
        texts = {"text": fields[name]} if name else {}
        yield f"{path}, topic {count}", {"num": _LABEL.sub("", number).strip(), **texts}


def _id(value: Any, place: str) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    key = str(value).strip() if isinstance(value, str | int) and value is not True else ""
    if not key or value is False:
        hint = f"its column is one of {', '.join(_IDS[:8])}; an id is a word or a number"
        raise CseError("no id", where=place, value=value, hint=hint)
    return key


def _judgements(paths: Sequence[Path], counts: dict[str, int]) -> dict[str, dict[str, int]]:
    check_parts(paths)
    kept: dict[str, dict[str, int]] = {}
    again = 0
    for place, (query, document, relevance) in chain.from_iterable(map(_judged, paths)):
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
