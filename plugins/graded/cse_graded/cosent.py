"""Pairs ranked by their cosine."""

from __future__ import annotations

from torch import Tensor

from cse_core.functional import paired_similarity
from cse_graded.ranking import Ranking


class Cosent(Ranking):
    """CoSENT (Su, 2022): the more similar of two pairs must have the larger cosine."""

    def of_pairs(self, left: Tensor, right: Tensor) -> Tensor:
        """Return ``[A, P]`` cosines, or dot products."""
        return paired_similarity(left, right, self.options.similarity)
