"""Test collections as their owners publish them: SMART's files of fields, and BEIR's.

Called as the readers of ``cse_evaluation.raw`` are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from cse_evaluation.raw import Raw, file_of, lines_of

_RECORD = re.compile(r"\.I\s+(\d+)\s*")
_FIELD = re.compile(r"\.([A-Z])\s*")


def smart_documents(raw: Raw, *, file: str) -> Iterator[dict[str, str]]:
    """Yield documents that have a title or a text.

    A title that is a sentence is left out of a text that begins with it, as all of Cranfield's do.
    """
    for key, fields in _records(file_of(raw, file)):
        title, text = fields.get("T", ""), fields.get("W", "")
        text = text.removeprefix(title).strip() if title.endswith(".") else text
        if title or text:
            yield {"_id": key, "title": title, "text": text}


def smart_queries(raw: Raw, *, file: str, by_order: bool = False) -> Iterator[dict[str, str]]:
    """Yield queries; with ``by_order`` their id is their place in the file, as in Cranfield."""
    for place, (key, fields) in enumerate(_records(file_of(raw, file)), 1):
        yield {"_id": str(place) if by_order else key, "text": fields["W"]}


def smart_judgements(
    raw: Raw, *, file: str, blank: Sequence[str] = ()
) -> Iterator[tuple[str, str, str]]:
    """Yield relevant documents, each once: query and document are the first two numbers of a line.

    All of Cranfield's degrees of relevance count as 1; its -1 is none. Documents of ``blank`` have
    no text, and are left out.
    """
    pairs: set[tuple[int, int]] = set()
    for line in lines_of(file_of(raw, file)):
        query, document, *rest = line.split() or ("", "")
        if query and rest[:1] != ["-1"] and document not in blank:
            pairs.add((int(query), int(document)))
    yield from ((str(query), str(document), "1") for query, document in sorted(pairs))


def _records(content: bytes) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield number and fields of the records of a file, fields by their letter, each as one line.

    A mark that the record had before is text: three of Cranfield's abstracts have such lines.
    """
    key, fields, field = "", dict[str, list[str]](), ""
    for line in [*lines_of(content), ".I 0"]:
        if record := _RECORD.fullmatch(line):
            if key:
                joined = {name: " ".join(" ".join(words).split()) for name, words in fields.items()}
                yield key, joined
            key, fields, field = str(int(record[1])), {}, ""
        elif (mark := _FIELD.fullmatch(line)) and mark[1] not in fields:
            field = mark[1]
            fields[field] = []
        else:
            fields.setdefault(field, []).append(line)


def beir_texts(raw: Raw, *, file: str) -> Iterator[dict[str, Any]]:
    """Yield documents or queries: id, title where they have one, and text."""
    for line in lines_of(file_of(raw, file)):
        if line.strip():
            row = json.loads(line)
            yield {name: row[name] for name in ("_id", "title", "text") if name in row}


def beir_judgements(raw: Raw, *, split: str) -> Iterator[tuple[str, str, str]]:
    """Yield query, document and relevance of a split."""
    for line in lines_of(file_of(raw, f"{split}.tsv"))[1:]:
        if line.strip():
            query, document, relevance = line.split("\t")
            yield query, document, str(int(relevance))
