"""Late interaction: the vectors of a model's tokens order the first passages of a search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cse import TextEncoder, maxsim, unit
from cse_search.reranking import DEPTH
from cse_search.vectors import Kind, shrunk

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Several = list[NDArray[np.float32]]

VECTORS, OFFSETS = "several.bin", "several-offsets.npy"
"""Vectors ``[M, D]`` end to end, in int8 where the others are, else in float16, and ``[N + 1]``
where those of each passage begin."""


@dataclass(frozen=True)
class Kept:
    """Several vectors of each passage of an index.

    Attributes:
        vectors: ``[M, D]``, mapped from its file.
        offsets: ``[N + 1]``.
    """

    vectors: NDArray[Any]
    offsets: NDArray[np.int64]

    @staticmethod
    def open(folder: Path, kind: Kind) -> Kept:
        """Open the files of an index whose other vectors are of a kind."""
        import numpy as np

        offsets = np.load(folder / OFFSETS)
        flat = np.memmap(folder / VECTORS, _kind(kind), mode="r")
        return Kept(flat.reshape(int(offsets[-1]), -1), offsets)

    def of(self, places: Sequence[int]) -> Several:
        """Return the vectors ``[m, D]`` of some passages."""
        spans = ((self.offsets[place], self.offsets[place + 1]) for place in places)
        return [unit(self.vectors[start:stop]).astype("float32") for start, stop in spans]


class KeptWriter:
    """Writes several vectors of each text, in the order of the texts.

    Args:
        folder: Folder of the index.
        level: Level of the vectors.
        kind: Of the other vectors.
        old: What is kept of some texts, at their places ``before``; these are -1 for the others.
    """

    def __init__(
        self, folder: Path, level: str, kind: Kind, old: Kept | None, before: Sequence[int]
    ) -> None:
        self.level, self._kind = level, _kind(kind)
        self._folder, self._old, self._before = folder, old, before
        self._lengths = [0]
        self._file = (folder / VECTORS).open("wb")

    def add(self, row: int, vectors: NDArray[np.float32]) -> None:
        """Write the vectors ``[m, D]`` of a new text, behind those that are kept before it."""
        self._copy(row)
        self._lengths.append(len(vectors))
        self._file.write(shrunk(unit(vectors), self._kind)[0].tobytes())

    def close(self) -> None:
        """Write the rest of what is kept, and where the vectors of each text begin."""
        import numpy as np

        self._copy(len(self._before))
        self._file.close()
        np.save(self._folder / OFFSETS, np.cumsum(self._lengths))

    def _copy(self, stop: int) -> None:
        for row in range(len(self._lengths) - 1, stop):
            assert self._old is not None, "a text without vectors was kept"
            start, end = self._old.offsets[self._before[row] :][:2]
            self._lengths.append(int(end - start))
            self._file.write(self._old.vectors[start:end].tobytes())


def _kind(kind: Kind) -> Kind:
    return "int8" if kind == "int8" else "float16"


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

    def scores(self, query: str, passages: Several) -> list[tuple[float, int]]:
        """Return of passages, given by their vectors, the score and the vector nearest to any.

        A passage without vectors has 0 and -1.
        """
        (asked,) = several(self.encode, [query], self.level, "query")
        return [
            (maxsim(asked, rows), int((asked @ rows.T).max(axis=0).argmax()) if len(rows) else -1)
            for rows in passages
        ]

    def of_texts(self, texts: Sequence[str]) -> Several:
        """Encode passages."""
        return several(self.encode, texts, self.level, "document")
