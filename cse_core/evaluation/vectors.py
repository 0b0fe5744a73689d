"""Encoding texts once, and cosines of their vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from cse_core.errors import CseError
from cse_core.evaluation.pairs import PairSet

Encode = Callable[[Sequence[str]], NDArray[np.float32]]
"""From N texts to their vectors ``[N, D]``, as the model gives them, not normalised."""


class EncodedTexts:
    """Unit vectors of distinct texts.

    Args:
        encode: The encoder; called once, with every distinct text.
        texts: Texts, repeated ones too.

    Raises:
        CseError: If a vector has a component that is not finite.
        ValueError: If the encoder does not return one vector for each text.
    """

    def __init__(self, encode: Encode, texts: Iterable[str]) -> None:
        distinct = list(dict.fromkeys(texts))
        vectors = np.asarray(encode(distinct))
        if vectors.ndim != 2 or len(vectors) != len(distinct):
            raise ValueError(
                f"the encoder returned an array of shape {vectors.shape} for {len(distinct)} texts"
            )
        broken = int((~np.isfinite(vectors).all(axis=1)).sum())
        if broken:
            raise CseError(
                f"the encoder gave vectors that are not finite for {broken} of {len(distinct)} "
                "texts",
                hint="the model has diverged: train it with a lower train.lr, or in fp32",
            )
        self._raw = vectors
        self._row: Mapping[str, int] = {text: row for row, text in enumerate(distinct)}

    def raw(self, texts: Sequence[str]) -> NDArray[np.floating]:
        """Return the vectors of known texts ``[N, D]`` as the encoder gave them."""
        return np.asarray(self._raw[[self._row[text] for text in texts]])

    def unit(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return the unit vectors of known texts ``[N, D]`` in float64."""
        return unit(self.raw(texts))

    def pair_vectors(self, pairs: PairSet) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the unit vectors of both sentences of each pair, each ``[P, D]``."""
        return (
            self.unit([pair.sentence1 for pair in pairs.pairs]),
            self.unit([pair.sentence2 for pair in pairs.pairs]),
        )


class Known:
    """An encoder that has encoded some texts already and does not encode them again.

    Args:
        encode: The encoder.
        texts: Texts that several numbers are made of; encoded when first asked for.
    """

    def __init__(self, encode: Encode, texts: Iterable[str]) -> None:
        self._encode = encode
        self._texts = list(dict.fromkeys(texts))
        self._rows = {text: row for row, text in enumerate(self._texts)}
        self._vectors: NDArray[np.floating] | None = None

    def __call__(self, texts: Sequence[str]) -> NDArray[np.floating]:
        """Return ``[N, D]`` vectors, of unknown texts by a call of the encoder."""
        if any(text not in self._rows for text in texts):
            return np.asarray(self._encode(texts))
        if self._vectors is None:
            self._vectors = np.asarray(self._encode(self._texts))
        return self._vectors[[self._rows[text] for text in texts]]


def unit(vectors: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return vectors ``[N, D]`` scaled to length 1 in float64; a zero vector stays zero."""
    exact = vectors.astype(np.float64)
    lengths = np.linalg.norm(exact, axis=1, keepdims=True)
    return np.asarray(exact / np.where(lengths == 0, 1.0, lengths))


def row_cosines(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the cosines ``[P]`` of unit vectors ``[P, D]``, row by row."""
    return np.asarray(np.einsum("pd,pd->p", first, second))
