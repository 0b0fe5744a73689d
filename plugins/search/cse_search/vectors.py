"""Vectors as an index keeps them: in float32, float16 or int8."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Kind = Literal["float32", "float16", "int8"]
ROWS = 2**14
"""Vectors that are read at once."""


def shrunk(vectors: NDArray[np.floating], kind: Kind) -> tuple[NDArray[Any], NDArray[np.float32]]:
    """Return vectors ``[N, D]`` as they are kept, and what each is multiplied by ``[N]``.

    In int8 the largest number of each vector becomes 127, and its length stays as it is.
    """
    import numpy as np

    if kind != "int8":
        return vectors.astype(kind), np.ones(len(vectors), np.float32)
    most = np.abs(vectors).max(axis=1, keepdims=True)
    whole = np.rint(vectors / np.where(most > 0, most, 1) * 127)
    lengths = [np.linalg.norm(side, axis=1) for side in (vectors, whole)]
    return whole.astype(np.int8), (lengths[0] / np.maximum(lengths[1], 1)).astype(np.float32)


@dataclass(frozen=True)
class Vectors:
    """Vectors that were kept.

    Attributes:
        kept: ``[N, D]``, mapped from its file.
        scales: ``[N]``; of int8, what each is multiplied by.
    """

    kept: NDArray[Any]
    scales: NDArray[np.float32] | None

    def __len__(self) -> int:
        return len(self.kept)

    def blocks(self) -> Iterator[NDArray[np.float32]]:
        """Yield them in float32, some at a time."""
        import numpy as np

        for start in range(0, len(self), ROWS):
            some = slice(start, start + ROWS)
            block = self.kept[some].astype(np.float32)
            yield block if self.scales is None else block * self.scales[some, None]
