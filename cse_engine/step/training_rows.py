"""The rows that a round trains on: the corpus, perhaps cut, or the pairs that a miner found."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cse_core.errors import CseError
from cse_core.protocols import Corpus, Tokenizer
from cse_core.records import ColumnType
from cse_core.reporter import Reporter
from cse_core.types import CorpusKeys, TokenBatch
from cse_engine.runtime.seeds import generator
from cse_engine.step.token_table import TokenTable, token_table

MOST_AHEAD = 1_000_000
"""Rows up to which whole columns are tokenised before the first step: a minute on two cores."""
_ROUND = 2**40
"""Where the row numbers of a round that brings its own texts begin."""
Pairs = Mapping[str, Sequence[str] | NDArray[Any]]
TableMaker = Callable[[Sequence[str], Tokenizer, int, Reporter], TokenTable]
"""Tokenises texts, at most so many tokens of each; the reporter hears how far it is."""
Tokenised = tuple[TokenTable, Tensor]
"""Different texts, and ``[rows]`` which of them a row has."""


def plain_table(
    texts: Sequence[str], tokenizer: Tokenizer, longest: int, reporter: Reporter
) -> TokenTable:
    """Tokenise texts without a word to the reporter."""
    return token_table(tokenizer, texts, longest)


@dataclass(eq=False, repr=False)
class TrainingRows:
    """Rows with columns of text, each text tokenised once before the first step.

    Of more than ``MOST_AHEAD`` rows only those of a step are tokenised, in each step.
    Of a text ``longest`` content tokens are kept. ``pairs`` are the columns of a round
    (``Round.pairs``), None for the corpus itself, whose tokens ``base`` may have already.

    Attributes:
        ahead: Whether columns are tokenised before the first step.
        corpus_row: ``[rows]`` the corpus row of each; where the round brings its own texts, numbers
            that no row of the corpus or of another round has.
        keys: Documents and equal texts, by ``corpus_row``.
        make_table: Tokenises a column; those of ``base`` and these are made in one way.
    """

    corpus: Corpus
    longest: int
    pairs: Pairs | None = None
    base: TrainingRows | None = None
    number: int = 0
    make_table: TableMaker = plain_table
    _tables: dict[tuple[int, str], Tokenised] = field(default_factory=dict, init=False)
    _values: dict[str, Tensor] = field(default_factory=dict, init=False)
    _offsets: dict[str, Tensor | None] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        corpus, pairs, base = self.corpus, self.pairs, self.base
        if base is not None:
            self.make_table = base.make_table
        text: Any = np.arange(len(corpus)) if pairs is None else pairs["text"]
        if pairs is None or isinstance(text, np.ndarray):
            self.corpus_row = torch.from_numpy(text.astype(np.int64))  # a copy
            text_ids, documents, first = corpus.text_ids, corpus.documents, 0
        else:
            first = self.number * _ROUND
            self.corpus_row = torch.arange(len(text)) + first
            documents = None if (d := pairs.get("document")) is None else _first_places(d)
            text_ids = _first_places(text)
        ids = torch.from_numpy(text_ids)
        known = torch.full_like(ids, -1) if documents is None else torch.from_numpy(documents)
        self.keys = CorpusKeys(known, ids, first)
        self.ahead = max(len(self), len(corpus)) <= MOST_AHEAD

    def __len__(self) -> int:
        return len(self.corpus_row)

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns."""
        if self.pairs is None:
            return tuple(self.corpus.names)
        names = self.corpus.names if isinstance(self.pairs["text"], np.ndarray) else ()
        return tuple(dict.fromkeys([*self.pairs, *names]))

    def tokenise(
        self, column: str, tokenizer: Tokenizer, reporter: Reporter | None = None
    ) -> Tokenised:
        """Return the tokens of a column's different texts, made or read once."""
        key = (id(tokenizer), column)
        if key not in self._tables:
            self._tables[key] = self._new_table(column, tokenizer, reporter or Reporter())
        return self._tables[key]

    def content(self, column: str, index: Tensor, tokenizer: Tokenizer) -> TokenBatch:
        """Return rows ``[B]`` of a column as content tokens; row i of the result has owner i.

        Of a column of lists these are places among the texts of all rows.
        """
        if not self.ahead and (id(tokenizer), column) not in self._tables:
            return tokenizer.content(self.texts(column, index), tokenizer.longest or self.longest)
        table, place = self.tokenise(column, tokenizer)
        return table.rows(place[index])

    def texts(self, column: str, index: Tensor) -> list[str]:
        """Return rows ``[B]`` of a column as texts, of lists those at places."""
        if self.offsets(column) is not None:
            return self.corpus.texts_of(column).take(index.numpy())
        source = self._source(column)
        if isinstance(source, tuple):
            name, rows = source
            return self.corpus.column(name).take(rows[index.numpy()])
        return [source[row] for row in index.tolist()]

    def of_rows(self, column: str, index: Tensor) -> list[Any]:
        """Return the text of each row ``[B]``, or its list of texts."""
        if (offsets := self.offsets(column)) is None:
            return list(self.texts(column, index))
        rows = self.corpus_row[index]
        ends = zip(offsets[rows].tolist(), offsets[rows + 1].tolist(), strict=True)
        return [self.texts(column, torch.arange(*pair)) for pair in ends]

    def values(self, column: str, kind: ColumnType) -> Tensor:
        """Return ``[rows]`` numbers of a column: float32, or int64 of integers and labels."""
        if column not in self._values:
            source = self._source(column)
            if isinstance(source, tuple):
                numbers = self.corpus.values(source[0], kind)
                numbers = numbers[source[1]] if self.offsets(column) is None else numbers
            else:
                numbers = _numbers(source, kind, column, where=f"round {self.number}")
            made = torch.from_numpy(numbers)
            self._values[column] = made.float() if made.is_floating_point() else made
        return self._values[column]

    def offsets(self, column: str) -> Tensor | None:
        """Return ``[corpus rows + 1]`` where lists begin, None where each row has one text."""
        if column not in self._offsets:
            names = () if self.pairs is not None and column in self.pairs else self.corpus.names
            offsets = self.corpus.offsets(column) if column in names else None
            self._offsets[column] = None if offsets is None else torch.from_numpy(offsets)
        return self._offsets[column]

    def _source(self, column: str) -> tuple[str, NDArray[Any]] | Sequence[str]:
        """Return a column's source: a column and rows of the corpus, or the round's own texts."""
        if self.pairs is not None and column not in self.columns:
            raise CseError(
                f"a round of texts of its own has no column {column!r}, only "
                f"{', '.join(self.columns)}",
                where="positives",
                hint="remove the part that needs it, or a miner that pairs rows of the data",
            )
        values = None if self.pairs is None else self.pairs.get(column)
        if values is None:
            return column, self.corpus_row.numpy()
        return ("text", values) if isinstance(values, np.ndarray) else values

    def _new_table(self, column: str, tokenizer: Tokenizer, reporter: Reporter) -> Tokenised:
        source = self._source(column)
        if self.offsets(column) is not None:
            texts, which = self.corpus.texts_of(column).distinct()
        elif not isinstance(source, tuple):
            texts, which = _distinct(source)
        elif self.pairs is None:
            texts, which = self.corpus.column(column).distinct()
        else:
            # Its rows are rows of the corpus, whose tokens another round may have made already.
            if self.base is None:
                self.base = TrainingRows(self.corpus, self.longest)
            name, rows = source
            table, place = self.base.tokenise(name, tokenizer, reporter)
            return table, place[torch.from_numpy(rows.astype(np.int64))]
        longest = tokenizer.longest or self.longest
        return self.make_table(texts, tokenizer, longest, reporter), torch.from_numpy(which)


@dataclass
class Batches:
    """Which rows each step of a round takes: every row once an epoch, in a new order.

    The order depends on the run's seed, the number of the round and the epoch; ``arrange`` may
    return another, of the size of a batch and the generators of an epoch. The last batch of an
    epoch has the rows that are left.
    """

    rows: int
    size: int
    _: KW_ONLY
    seed: int = 0
    number: int = 0
    shuffle: bool = False
    arrange: Callable[[int, Callable[[str], torch.Generator]], Tensor | None] | None = None
    _order: tuple[int, Tensor] = field(default=(-1, torch.empty(0)), init=False, repr=False)

    @property
    def per_epoch(self) -> int:
        """Return the batches of an epoch."""
        return math.ceil(self.rows / self.size)

    def epoch(self, step: int) -> int:
        """Return the epoch of a step, counted from 0."""
        return step // self.per_epoch

    def at(self, step: int) -> Tensor:
        """Return ``[B]`` the rows of a step."""
        epoch, number = divmod(step, self.per_epoch)
        if self._order[0] != epoch:
            place = torch.device("cpu"), self.seed, self.number, "order", epoch
            order = None
            if self.arrange is not None:
                order = self.arrange(self.size, lambda name: generator(*place, name))
            if order is None and self.shuffle:
                order = torch.randperm(self.rows, generator=generator(*place))
            self._order = epoch, torch.arange(self.rows) if order is None else order
        return self._order[1][number * self.size : (number + 1) * self.size]


def _distinct(texts: Sequence[str]) -> tuple[Sequence[str], NDArray[np.int64]]:
    """List the different texts by first appearance, and ``[rows]`` which of them a row has."""
    places: dict[str, int] = {}
    which = [places.setdefault(text, len(places)) for text in texts]
    return list(places), np.array(which, dtype=np.int64)


def _numbers(values: Sequence[Any], kind: ColumnType, column: str, where: str) -> NDArray[Any]:
    """Read the values of a round as ``[rows]`` numbers, a label's its place among the sorted."""
    if kind == "label":
        return np.unique([str(value) for value in values], return_inverse=True)[1].astype(np.int64)
    dtype = np.int64 if kind == "int" else np.float64
    try:
        numbers = np.array([dtype(value) for value in values], dtype)
    except (ValueError, OverflowError):
        numbers = np.array([np.nan])
    if not np.isfinite(numbers).all():
        what = f"column {column} must hold {'integers' if kind == 'int' else 'finite numbers'}"
        raise CseError(what, where=where, hint="correct the part that makes the round")
    return numbers


def _first_places(values: Sequence[Any] | NDArray[Any]) -> NDArray[np.int64]:
    first: dict[Any, int] = {}
    return np.array([first.setdefault(v, i) for i, v in enumerate(values)], dtype=np.int64)
