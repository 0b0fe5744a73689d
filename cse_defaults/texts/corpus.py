"""The training rows of a run, as columns of Arrow text, and what was seen in loading them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from cse_core.errors import CseError
from cse_core.records import ColumnType
from cse_core.texts import LoadReport
from cse_defaults.texts.tables import batched, filtered, is_lists, lengths, text_table

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from cse_core.protocols import Tokenizer

_ROWS = 10_000
_FEW = 20
"""Rows are few where a column has more than so many times as many."""


class TextColumn(Sequence[str]):
    """A column of texts that stay in Arrow until they are asked for."""

    def __init__(self, texts: pa.ChunkedArray) -> None:
        self._texts = texts

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, index: Any) -> Any:
        """Return the text of a row, or those of a slice as a list."""
        if isinstance(index, slice):
            return self._texts[index].to_pylist()
        return self._texts[int(index)].as_py()

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), _ROWS):
            yield from self._texts.slice(start, _ROWS).to_pylist()

    def distinct(self) -> tuple[TextColumn, NDArray[np.int64]]:
        """List the different texts by first appearance, and ``[rows]`` which of them a row has."""
        import numpy as np
        import pyarrow as pa

        # Arrow's own ways to numpy import pandas first: half a second.
        encoded = self._texts.dictionary_encode().unify_dictionaries()
        which = [np.from_dlpack(chunk.indices) for chunk in encoded.chunks]
        texts = TextColumn(pa.chunked_array([encoded.chunk(0).dictionary]))
        return texts, np.concatenate(which, dtype=np.int64)

    def take(self, rows: Sequence[int] | NDArray[np.integer[Any]]) -> list[str]:
        """Return the texts of the given rows, in their order."""
        import numpy as np
        import pyarrow as pa

        if self._texts.num_chunks > 1 and len(rows) * _FEW < len(self):
            # Arrow joins all chunks of the column before it takes a single row.
            return [self._texts[int(row)].as_py() for row in rows]

        numbers = pa.py_buffer(np.ascontiguousarray(rows, np.int64))  # pa.array imports pandas
        index = pa.Array.from_buffers(pa.int64(), len(rows), [None, numbers])
        texts: list[str] = self._texts.take(index).to_pylist()
        return texts


@dataclass(frozen=True, eq=False)
class Corpus:
    """The training rows of a run: a row is a sentence, a paragraph or a document.

    Attributes:
        table: ``pyarrow.Table`` of strings, ``text`` and where given ``positive``, ``negative``,
            ``document``, ``title`` and others, and of lists of strings; no text is blank.
        documents: Document number of each row, -1 for none, [rows]; None without documents. One
            id in two files is two documents.
        report: What was seen in loading it.
        held_out: Rows that are kept out of it; None where there are none.
    """

    table: pa.Table = field(repr=False)
    documents: NDArray[np.int64] | None = field(default=None, repr=False)
    report: LoadReport = LoadReport()
    held_out: Corpus | None = field(default=None, repr=False)

    @classmethod
    def from_columns(cls, columns: Mapping[str, Sequence[str]], *, name: str = "texts") -> Corpus:
        """Make a corpus of texts at hand, as many in each column; none in ``text`` is blank."""
        table = text_table(columns)
        documents = document_numbers([table]) if "document" in columns else None
        return cls(table, documents, LoadReport((name,)))

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the columns."""
        return tuple(self.table.column_names)

    def column(self, name: str) -> TextColumn:
        """Return a column with one text a row, read from Arrow when asked for."""
        if name in self.names and is_lists(self.table.column(name)):
            what = f"column {name} holds lists, and a part of this run reads one text of each row"
            raise CseError(
                what, where="data", hint="--set views.VIEW.lists=rows, or remove the part"
            )
        return self.texts_of(name)

    def texts_of(self, name: str) -> TextColumn:
        """Return the texts of a column; those of lists lie end to end."""
        import pyarrow.compute as pc

        if name not in self.names:
            raise CseError(
                f"the data has no column {name}",
                where="data",
                hint=f"its columns: {', '.join(self.names)}; "
                f"name another with --set data.columns.{name}=NAME",
            )
        column = self.table.column(name)
        return TextColumn(pc.list_flatten(column) if is_lists(column) else column)

    def offsets(self, name: str) -> NDArray[np.int64] | None:
        """Return ``[rows + 1]`` where the lists of a column begin; None: a row has one text."""
        import numpy as np

        column = self.table.column(name)
        if not is_lists(column):
            return None
        return np.concatenate([[0], lengths(column)]).cumsum(dtype=np.int64)

    def values(self, name: str, kind: ColumnType) -> NDArray[Any]:
        """Return a column as numbers ``[rows]``: float64, or int64 of integers and labels.

        A label's number is its place among the sorted labels. Numbers of lists lie end to end.
        """
        from cse_defaults.texts.columns import read_values

        return read_values(self.texts_of(name), kind, column=name, where="data")

    def pieces(self, tokenizer: Tokenizer, tokens: int, columns: Sequence[str] = ()) -> Corpus:
        """Cut the texts into pieces, which keep their document and title.

        A piece has so many tokens, special ones not counted; the last of a text has those left. A
        cut may stand inside a word; the rest of the word is then read as a word of its own.

        Raises:
            CseError: If the run encodes further ``columns``, since only texts are cut.
        """
        if columns:
            what = f"texts are split, but column {columns[0]}, which this run also encodes, is not"
            hint = "--set data.split_tokens=none, or a recipe with one column"
            raise CseError(what, where="data.split_tokens", value=tokens, hint=hint)
        pieces: list[str] = []
        rows: list[int] = []
        cut = (
            pair
            for texts in batched(self.column("text"), None)
            for pair in zip(texts, tokenizer.cuts(texts, tokens), strict=True)
        )
        for row, (text, places) in enumerate(cut):
            parts = [part for one, two in pairwise(places) if (part := text[one:two].strip())]
            pieces += parts
            rows += [row] * len(parts)
        about: list[str] = [name for name in ("document", "title") if name in self.names]
        columns_of = {name: self.column(name).take(rows) for name in about}
        line = f"{len(self):,} texts cut into {len(pieces):,} of at most {tokens} tokens"
        return replace(
            self,
            table=text_table({"text": pieces, **columns_of}),
            documents=None if self.documents is None else self.documents[rows],
            report=replace(self.report, messages=(*self.report.messages, line)),
        )

    @cached_property
    def text_ids(self) -> NDArray[np.int64]:
        """Return for each row the first row with the same text, [rows].

        Texts are compared by hashes of 64 bits: of ten million, two different ones have the same
        with a probability of three in a million.
        """
        import numpy as np

        hashes = np.fromiter(map(hash, self.column("text")), np.int64, len(self))
        _, first, which = np.unique(hashes, return_index=True, return_inverse=True)
        return first[which]

    @cached_property
    def fingerprint(self) -> str:
        """Return a hash of columns, contents and documents; paths do not enter."""
        import numpy as np
        import pyarrow.compute as pc

        whole = hashlib.sha256()
        for name in sorted(self.names):
            texts, sizes = hashlib.sha256(), hashlib.sha256()
            column = self.table.column(name)
            if is_lists(column):
                sizes.update(lengths(column).astype("<i8").tobytes())
                column = pc.list_flatten(column)
            for chunk in column.chunks:
                parts, at = chunk.buffers(), chunk.offset
                ends = np.frombuffer(parts[1] or bytes(4), np.int32)[at : at + len(chunk) + 1]
                texts.update(memoryview(parts[2] or b"")[ends[0] : ends[-1]])
                sizes.update(np.diff(ends).astype("<i8").tobytes())
            whole.update(name.encode() + b"\0" + texts.digest() + sizes.digest())
        if self.documents is not None:
            whole.update(self.documents.astype("<i8").tobytes())
        if self.held_out is not None:
            whole.update(self.held_out.fingerprint.encode())
        return f"sha256:{whole.hexdigest()}"


def hold_out(corpus: Corpus, count: int) -> Corpus:
    """Return a corpus without the rows of some documents, which are its ``held_out``.

    The hash of a document's first text decides, so that the same ones are held out whatever their
    order and number; rows of no document are one each. At most a fifth is held out. Near-copies of
    these documents are neither trained on nor held out.
    """
    import numpy as np

    from cse_defaults.texts.copies import near_copies

    if not count:
        return corpus
    keys = corpus.text_ids
    if corpus.documents is not None:
        keys = np.where(corpus.documents < 0, keys, len(corpus) + corpus.documents)
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    texts = corpus.column("text").take(first)
    order = np.argsort([hashlib.blake2b(text.encode(), digest_size=8).digest() for text in texts])
    some = order[: min(count, len(first) // 5)]
    hint = "name more data, or --data.held_out 0"
    if not len(some):
        raise CseError(f"{len(first)} texts are too few to hold some out", where="data", hint=hint)
    copies = near_copies(corpus.table.column("text"), which, some.tolist())
    drawn = np.isin(which, some) & ~copies[which]
    trained = ~drawn & ~copies[which]
    if not trained.any():
        what = f"{len(some)} documents are held out, and all others are near-copies of them"
        raise CseError(what, where="data", hint=hint)
    report = corpus.report
    if number := int(copies.sum()):
        copies_are = (
            "a near-copy, which is" if number == 1 else f"{number:,} near-copies, which are"
        )
        line = f"held-out documents have {copies_are} not trained on either"
        report = replace(report, messages=(*report.messages, line))

    def part(rows: NDArray[np.bool_]) -> Corpus:
        documents = None if corpus.documents is None else corpus.documents[rows]
        return Corpus(filtered(corpus.table, rows), documents, report)

    return replace(part(trained), held_out=part(drawn))


def document_numbers(tables: Iterable[pa.Table]) -> NDArray[np.int64]:
    """Number the documents of all rows by first appearance; a blank id is -1.

    One id in two tables is two documents.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    chunks: list[pa.Array] = []
    for number, table in enumerate(tables):
        ids = table.column("document")
        named = pc.binary_join_element_wise(str(number), ids, " ")
        chunks += pc.if_else(pc.equal(ids, ""), None, named).chunks
    encoded = pa.chunked_array(chunks, pa.string()).dictionary_encode().unify_dictionaries()
    codes = [pc.fill_null(chunk.indices, -1) for chunk in encoded.chunks]
    return np.concatenate([np.from_dlpack(part) for part in codes], dtype=np.int64)
