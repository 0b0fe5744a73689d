"""The texts of a round that may be retrieved, each once."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from cse_core.data import Corpus
from cse_core.tokenization.tokenizer import TextTokenizer
from cse_core.tokenization.training_rows import TrainingRows
from cse_core.types import TokenBatch


class RoundTexts:
    """The distinct texts of the corpus, or of a round that brings its own.

    Attributes:
        longest: Tokens of a row at most.
        distinct: ``[U]`` int64, in order: the first place of each text among the round's keys.
    """

    def __init__(self, rows: TrainingRows, corpus: Corpus) -> None:
        self.longest = rows.longest
        self.first, self.text_ids = rows.keys.first, rows.keys.text_ids
        self.distinct = torch.unique(self.text_ids)
        # Rows of a round that are numbers of corpus rows are not in the order of its keys.
        mined = None if rows.pairs is None else rows.pairs["text"]
        in_order = not isinstance(mined, np.ndarray)
        self._content = rows.content if in_order else None
        self._texts = rows.texts if in_order else None
        self._corpus = corpus

    def __len__(self) -> int:
        """Return U."""
        return len(self.distinct)

    def numbers(self, rows: Tensor) -> Tensor:
        """Return which of the U texts rows ``[B]`` of the round have."""
        return torch.searchsorted(self.distinct, self.text_ids[rows - self.first])

    def texts(self, numbers: Tensor) -> list[str]:
        """Return some of the U texts."""
        places = self.distinct[numbers]
        if self._texts is not None:
            return self._texts("text", places)
        return self._corpus.column("text").take(places.numpy())

    def tokens(self, numbers: Tensor, tokenizer: TextTokenizer) -> TokenBatch | None:
        """Return some of the U texts as content tokens, where they are tokenised already."""
        if self._content is None:
            return None
        return self._content("text", self.distinct[numbers], tokenizer)
