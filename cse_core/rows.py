"""The rows that a round trains on: the corpus itself, or the pairs that a miner found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cse_core.tokens import TextTokenizer, TokenTable
from cse_core.types import CorpusKeys, TokenBatch

if TYPE_CHECKING:
    from cse_core.data import Corpus

_ROUND = 2**40
"""Where the row numbers of a round that brings its own texts begin."""
Pairs = Mapping[str, Sequence[str] | NDArray[Any]]


class TrainingRows:
    """Rows with columns of text, each text tokenised once, when a step first needs it.

    Args:
        corpus: The run's corpus.
        longest: Content tokens of a text that are kept.
        pairs: The columns of a round (``Round.pairs``); None for the corpus itself.
        base: Rows of the corpus whose tokens can be used again.
        number: Of the round.

    Attributes:
        corpus_row: ``[rows]`` the corpus row of each; where the round brings its own texts, numbers
            that no row of the corpus or of another round has.
        keys: Documents and equal texts, by ``corpus_row``.
    """

    def __init__(
        self,
        corpus: Corpus,
        longest: int,
        pairs: Pairs | None = None,
        base: TrainingRows | None = None,
        number: int = 0,
    ) -> None:
        self.corpus = corpus
        self.longest = longest
        self.pairs = pairs
        self._base = base
        self._tables: dict[tuple[int, str], tuple[TokenTable, Tensor]] = {}
        own = None if pairs is None else pairs["text"]
        if own is None:
            self.corpus_row = torch.arange(len(corpus))
        elif isinstance(own, np.ndarray):
            self.corpus_row = torch.from_numpy(own.astype(np.int64))
        else:
            self.corpus_row = torch.arange(len(own)) + number * _ROUND
        if own is None or isinstance(own, np.ndarray):
            self.keys = _keys_of_corpus(corpus)
        else:
            documents = None if pairs is None else pairs.get("document")
            self.keys = replace(_keys_of_texts(own, documents), first=number * _ROUND)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.corpus_row)

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns."""
        if self.pairs is None:
            return tuple(self.corpus.names)
        own = self.corpus.names if isinstance(self.pairs["text"], np.ndarray) else ()
        return tuple(dict.fromkeys([*self.pairs, *own]))

    def content(self, column: str, index: Tensor, tokenizer: TextTokenizer) -> TokenBatch:
        """Return rows ``[B]`` of a column as content tokens; row i of the result has owner i."""
        table, place = self._table(column, tokenizer)
        return table.rows(place[index])

    def texts(self, column: str, index: Tensor) -> list[str]:
        """Return rows ``[B]`` of a column as texts."""
        values: Any = None if self.pairs is None else self.pairs.get(column)
        if values is not None and not isinstance(values, np.ndarray):
            return [values[row] for row in index.tolist()]
        if values is not None:
            return self.corpus.column("text").take(values[index.numpy()])
        return self.corpus.column(column).take(self.corpus_row[index].numpy())

    def _values(self, column: str) -> Sequence[str] | NDArray[Any]:
        if self.pairs is not None and column in self.pairs:
            return self.pairs[column]
        whole = self.corpus.column(column)
        return whole if self.pairs is None else whole.take(self.corpus_row.numpy())

    def _table(self, column: str, tokenizer: TextTokenizer) -> tuple[TokenTable, Tensor]:
        key = (id(tokenizer), column)
        if key not in self._tables:
            values = self._values(column)
            if isinstance(values, np.ndarray):
                base = self._base or TrainingRows(self.corpus, self.longest)
                table, place = base._table("text", tokenizer)
                self._tables[key] = table, place[torch.from_numpy(values.astype(np.int64))]
            else:
                first: dict[str, int] = {}
                place = torch.tensor([first.setdefault(text, len(first)) for text in values])
                self._tables[key] = tokenizer.table(list(first), self.longest), place
        return self._tables[key]


def _keys_of_corpus(corpus: Corpus) -> CorpusKeys:
    text_ids = torch.from_numpy(np.array(corpus.text_ids, dtype=np.int64))
    if corpus.documents is None:
        return CorpusKeys(torch.full_like(text_ids, -1), text_ids)
    return CorpusKeys(torch.from_numpy(np.array(corpus.documents, dtype=np.int64)), text_ids)


def _keys_of_texts(
    texts: Sequence[str], documents: Sequence[str] | NDArray[Any] | None
) -> CorpusKeys:
    text_ids = torch.from_numpy(_first_places(texts))
    if documents is None:
        return CorpusKeys(torch.full_like(text_ids, -1), text_ids)
    return CorpusKeys(torch.from_numpy(_first_places(documents)), text_ids)


def _first_places(values: Sequence[Any] | NDArray[Any]) -> NDArray[np.int64]:
    first: dict[Any, int] = {}
    return np.array(
        [first.setdefault(value, place) for place, value in enumerate(values)], dtype=np.int64
    )
