"""A sentence and what comes before it."""

from __future__ import annotations

from typing import Any

from cse_infocse.documents import Ints
from cse_infocse.starts import ContextStart


class PrecedingContext(ContextStart):
    """Pairs of a sentence and the sentences before it, as contrastive predictive coding has them.

    CPC (van den Oord et al., 2018) reads all that precedes by a recurrent net; here the context is
    the last sentences, or all of them, as one text that is cut, or the mean of their vectors.
    """

    def has_context(self, place: Ints) -> Any:
        """Return ``[S]`` whether a sentence is not its document's first."""
        return place > 0

    def around(self, place: int, first: int, stop: int) -> range:
        """Return the sentences before a place."""
        most = self.options.sentences
        return range(first if most is None else max(first, place - most), place)
