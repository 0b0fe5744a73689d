"""Late interaction: the vectors of a model's tokens order the first passages of a search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cse import TextEncoder, unit
from cse_search.reranking import DEPTH

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Several = list[NDArray[np.float32]]

VECTORS, OFFSETS = "several.f16", "several-offsets.npy"
"""Vectors ``[M, D]`` in float16 end to end, and ``[N + 1]`` where those of each passage begin."""
_BLOCK = 512


@dataclass(frozen=True)
class Kept:
    """Several vectors of each passage of an index, of length 1.

    Attributes:
        vectors: ``[M, D]``, mapped from its file.
        offsets: ``[N + 1]``.
    """

    vectors: NDArray[np.float16]
    offsets: NDArray[np.int64]

    @staticmethod
    def open(folder: Path) -> Kept:
        """Open the files of an index."""
        import numpy as np

        offsets = np.load(folder / OFFSETS)
        flat = np.memmap(folder / VECTORS, np.float16, mode="r")
        return Kept(flat.reshape(int(offsets[-1]), -1), offsets)

    def of(self, places: Sequence[int]) -> Several:
        """Return the vectors ``[m, D]`` of some passages."""
        spans = ((self.offsets[place], self.offsets[place + 1]) for place in places)
        return [self.vectors[start:stop].astype("float32") for start, stop in spans]

    @staticmethod
    def write(
        folder: Path,
        encode: TextEncoder,
        level: str,
        texts: Sequence[str],
        old: Kept | None,
        before: Sequence[int],
        progress: Callable[[int, int, str], None],
    ) -> None:
        """Write the vectors of texts, copied from their places ``before`` where these are known."""
        import numpy as np

        lengths = []
        with (folder / VECTORS).open("wb") as file:
            for start in range(0, len(texts), _BLOCK):
                some = range(start, min(start + _BLOCK, len(texts)))
                new = [row for row in some if old is None or before[row] < 0]
                encoded = several(encode, [texts[row] for row in new], level, "document")
                made = dict(zip(new, encoded, strict=True))
                for row in some:
                    vectors = made[row] if row in made or old is None else old.of([before[row]])[0]
                    lengths.append(len(vectors))
                    file.write(vectors.astype("<f2").tobytes())
                progress(some.stop, len(texts), f"texts by {level}")
        np.save(folder / OFFSETS, np.cumsum([0, *lengths]))


def several(encode: TextEncoder, texts: Sequence[str], level: str, role: Any) -> Several:
    """Return the vectors ``[m, D]`` of each text at a level, of length 1."""
    return [unit(vectors).astype("float32") for vectors in encode.several(texts, level, role)]


@dataclass(frozen=True)
class Late:
    """Orders passages by the sum over a query's vectors of the largest cosine (MaxSim).

    Attributes:
        encode: Encodes queries, and passages that no index keeps.
        level: Level of the vectors.
        depth: Passages of a query that are ordered.
    """

    encode: TextEncoder
    level: str
    depth: int = DEPTH

    def scores(self, query: str, passages: Several) -> list[float]:
        """Return the scores of passages, given by their vectors; one without any has 0."""
        (asked,) = several(self.encode, [query], self.level, "query")
        return [float((asked @ rows.T).max(axis=1).sum()) if len(rows) else 0 for rows in passages]

    def of_texts(self, texts: Sequence[str]) -> Several:
        """Encode passages."""
        return several(self.encode, texts, self.level, "document")
