"""Vectors of an index mapped to those of another model, learned from some of its texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from cse import TextEncoder, similarities, unit
from cse_core.errors import CseError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cse_search.index import Index

LEAST = 50
"""Texts that a map is learned from, at least."""
_NEAREST = 10
_RIDGES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)


@dataclass(frozen=True)
class MappedVectors:
    """Vectors that are mapped when they are read; those of the sample are exact.

    Attributes:
        old: Vectors ``[N, D]`` of the other model.
        weights: The map ``[D + 1, E]``; its last row is added.
        exact: Vectors ``[E]`` by row.
        unit: Whether the model's vectors have length 1.
    """

    old: NDArray[np.floating]
    weights: NDArray[np.float64]
    exact: dict[int, NDArray[np.float32]]
    unit: bool

    def __len__(self) -> int:
        return len(self.old)

    @property
    def shape(self) -> tuple[int, int]:
        """Return their number and dimension."""
        return len(self.old), self.weights.shape[1]

    def __getitem__(self, rows: Sequence[int]) -> NDArray[np.float32]:
        vectors = _mapped(self.old[rows], self.weights, self.unit)
        for place, row in enumerate(rows):
            if row in self.exact:
                vectors[place] = self.exact[row]
        return vectors


def map_index(old: Index, encode: TextEncoder, count: int) -> Index:
    """Return an index of the same texts with the vectors of another model.

    ``count`` texts are encoded. A ridge regression from their old vectors to the new ones maps the
    others; its strength is the one that serves a fifth of these texts best.

    Returns:
        The index. ``about["mapped"]`` has how many ``texts`` are mapped, how many were ``encoded``,
        and ``recall``: of the 10 nearest of each text of that fifth, among this fifth, how many the
        mapped vectors find.
    """
    import numpy as np

    if len(old.vectors) < LEAST:
        raise CseError(f"the index has {len(old.vectors):,} texts, too few to learn a map from",
                       where="--map", value=count, hint="leave it out")  # fmt: skip
    rows = np.random.default_rng(0).permutation(len(old.vectors))[:count]
    place = {int(row): at for at, row in enumerate(rows)}
    texts = {place[at]: line["text"] for at, line in enumerate(old.lines()) if at in place}
    one = np.asarray(old.vectors[np.sort(rows)], np.float64)[np.argsort(np.argsort(rows))]
    other = encode([texts[at] for at in range(len(rows))], role="document")
    other = unit(other).astype(np.float32) if encode.similarity == "cosine" else other
    cosine, last = encode.similarity == "cosine", len(rows) // 5
    near = _nearest(encode.similarity, other[:last], other[:last])

    def recall(ridge: float) -> float:
        mapped = _mapped(one[:last], _fit(one[last:], other[last:], ridge), cosine)
        hits = _nearest(encode.similarity, other[:last], mapped)
        return float(np.mean([len({*a} & {*b}) for a, b in zip(near, hits, strict=True)]))

    recalls = {ridge: recall(ridge) for ridge in _RIDGES}
    best = max(recalls, key=recalls.__getitem__)
    exact = {int(row): other[at] for at, row in enumerate(rows)}
    made: Any = MappedVectors(old.vectors, _fit(one, other, best), exact, cosine)
    said = {"texts": len(old.vectors) - len(rows), "encoded": len(rows),
            "recall": round(recalls[best] / near.shape[1], 4)}  # fmt: skip
    return replace(old, about={**old.about, "mapped": said}, vectors=made)


def _fit(one: NDArray[Any], other: NDArray[Any], ridge: float) -> NDArray[np.float64]:
    """Return the ridge regression ``[D + 1, E]`` whose last row, the mean, is not shrunk."""
    import numpy as np

    centre, mean = one.mean(axis=0), other.mean(axis=0, dtype=np.float64)
    moved = one - centre
    square = moved.T @ moved
    square.flat[:: len(square) + 1] += ridge * np.trace(square) / len(square)
    weights = np.linalg.solve(square, moved.T @ (other - mean))
    return np.vstack([weights, mean - centre @ weights])


def _mapped(one: NDArray[Any], weights: NDArray[np.float64], scale: bool) -> NDArray[np.float32]:
    import numpy as np

    mapped = np.asarray(one, np.float64) @ weights[:-1] + weights[-1]
    return (unit(mapped) if scale else mapped).astype(np.float32)


def _nearest(kind: Any, asked: NDArray[Any], texts: NDArray[Any]) -> NDArray[np.intp]:
    """Return the nearest texts of each but the text itself, ``[N, 10]``."""
    import numpy as np

    near = similarities("dot" if kind == "cosine" else kind, asked, texts)
    np.fill_diagonal(near, -np.inf)
    return np.argsort(-near, axis=1, kind="stable")[:, : min(_NEAREST, len(texts) - 1)]
