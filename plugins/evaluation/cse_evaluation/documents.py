"""Documents with titles, for retrieval: read from any file of articles or rows with a title."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cse import ARTICLE_COLUMNS, read_table, table_name
from cse_cli.api import Installed, load_texts
from cse_core.errors import CseError

if TYPE_CHECKING:
    from cse_core.protocols import Column


@dataclass(frozen=True)
class DocumentSet:
    """Documents with titles.

    Attributes:
        name: ``bbc_news.all``; of a file ``news.test.jsonl`` it is ``news.test``.
        titles: The distinct titles of the documents, two at least.
        gold: ``[N]`` which title each document has.
        offsets: ``[N + 1]`` where each document's sentences begin in ``rows``.
        rows: ``[S]`` places of the sentences in ``sentences``, document by document.
        sentences: All sentences of the file; they stay in Arrow until they are asked for.
        untitled: Documents left out because they have no title.
    """

    name: str
    titles: tuple[str, ...]
    gold: NDArray[np.int64]
    offsets: NDArray[np.int64]
    rows: NDArray[np.int64]
    sentences: Column
    untitled: int = 0

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self.gold)

    def blocks(self, sentences: int) -> Iterator[tuple[list[str], NDArray[np.int64]]]:
        """Yield sentences of whole documents, about so many at once, and each one's document."""
        start = 0
        while start < len(self):
            end = int(self.offsets[start]) + sentences
            stop = max(int(np.searchsorted(self.offsets, end, side="right")) - 1, start + 1)
            rows = self.rows[self.offsets[start] : self.offsets[stop]]
            lengths = np.diff(self.offsets[start : stop + 1])
            yield self.sentences.take(rows), np.repeat(np.arange(start, stop), lengths)
            start = stop

    @cached_property
    def fingerprint(self) -> str:
        """Return 12 hexadecimal digits that differ where any title or sentence differs."""
        digest = hashlib.sha256()
        for texts, document in self.blocks(10_000):
            for text, number in zip(texts, document.tolist(), strict=True):
                digest.update(f"{number}\0{text}\0".encode())
        for number in self.gold.tolist():
            digest.update(f"{self.titles[number]}\0".encode())
        return digest.hexdigest()[:12]


def is_document_file(path: str | os.PathLike[str]) -> bool:
    """Tell whether a table file holds documents with titles, by its columns."""
    columns = set(read_table(path)[0])
    return "title" in columns and bool(columns & {*ARTICLE_COLUMNS, "document"})


def read_documents(path: str | os.PathLike[str], plugins: Installed | None = None) -> DocumentSet:
    """Read a file of articles (``sections`` or ``paras``), or of rows with document and title.

    The path may be a folder of documents or the name of an installed data set.
    """
    where = Path(path).name
    corpus = load_texts(os.fspath(path), plugins or Installed())
    if corpus.documents is None or "title" not in corpus.names:
        raise CseError(
            "no documents with titles",
            where=where,
            hint='an article is {"title", "sections"} or {"title", "paras"}, a row has the columns '
            "text, document and title",
        )
    rows = np.flatnonzero(corpus.documents >= 0)
    rows = rows[np.argsort(corpus.documents[rows], kind="stable")]
    _, first, counts = np.unique(corpus.documents[rows], return_index=True, return_counts=True)
    titles = [title.strip() for title in corpus.column("title").take(rows[first])]
    titled = np.array([bool(title) for title in titles])
    number: dict[str, int] = {}
    gold = [number.setdefault(title, len(number)) for title in titles if title]
    if len(number) < 2:
        hint = "name a file of several documents with titles"
        raise CseError("fewer than two titles that differ", where=where, hint=hint)
    name = table_name(path)
    return DocumentSet(
        name=name if "." in name else f"{name}.all",
        titles=tuple(number),
        gold=np.array(gold, dtype=np.int64),
        offsets=np.concatenate([[0], np.cumsum(counts[titled])]).astype(np.int64),
        rows=rows[np.repeat(titled, counts)],
        sentences=corpus.column("text"),
        untitled=int((~titled).sum()),
    )
