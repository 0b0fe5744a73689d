"""Encoding texts once, and cosines of their vectors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cse import unit
from cse_core.errors import CseError
from cse_core.suites import Encode
from cse_evaluation.pairs import PairSet


class EncodedTexts:
    """An encoder that encodes some texts once, when it is first asked for one of them.

    One call encodes all of them; a text may be given several times.
    """

    def __init__(self, encode: Encode, texts: Iterable[str]) -> None:
        self._encode = encode
        self._row = {text: row for row, text in enumerate(dict.fromkeys(texts))}

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors ``[N, D]`` as the encoder gives them; other texts go to it.

        Raises:
            CseError: If a vector of its texts has a component that is not finite.
            ValueError: If the encoder does not return one vector for each text.
        """
        if any(text not in self._row for text in texts):
            return np.asarray(self._encode(texts))
        return self._vectors[[self._row[text] for text in texts]]

    @cached_property
    def _vectors(self) -> NDArray[np.float32]:
        vectors = np.asarray(self._encode(list(self._row)))
        if vectors.ndim != 2 or len(vectors) != len(self._row):
            raise ValueError(
                f"the encoder returned an array of shape {vectors.shape} for {len(self._row)} texts"
            )
        broken = int((~np.isfinite(vectors).all(axis=1)).sum())
        if broken:
            raise CseError(
                f"the encoder gave vectors that are not finite for {broken} of {len(vectors)} "
                "texts",
                hint="the model has diverged: train it with a lower train.lr, or in fp32",
            )
        return vectors

    def unit(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return the unit vectors of texts ``[N, D]`` in float64."""
        return unit(self(texts))

    def pair_vectors(self, pairs: PairSet) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the unit vectors of both sentences of each pair, each ``[P, D]``."""
        return (
            self.unit([pair.sentence1 for pair in pairs.pairs]),
            self.unit([pair.sentence2 for pair in pairs.pairs]),
        )


def row_cosines(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the cosines ``[P]`` of unit vectors ``[P, D]``, row by row."""
    return np.asarray(np.einsum("pd,pd->p", first, second))
