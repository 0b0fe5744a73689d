"""Near-copies among documents, by the runs of words that they share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cse_core.words import UNSPACED
from cse_defaults.texts.tables import ROWS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

_RUN = 5
_SHARE = 0.5


def near_copies(
    texts: pa.ChunkedArray, documents: NDArray[np.int64], some: Sequence[int]
) -> NDArray[np.bool_]:
    """Find the near-copies of some documents, ``[documents]``.

    One of two documents is a near-copy of the other if they share at least half of the runs of
    five words that the shorter one has; case and punctuation do not count. Of near-copies among
    ``some``, the first is not a copy.

    Args:
        texts: Text of every row.
        documents: Document of every row, numbered from 0, ``[rows]``.
        some: The documents whose copies are looked for.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    from scipy.sparse import csr_array

    number = int(documents.max()) + 1
    place = np.full(number, -1)
    place[[*some]] = np.arange(len(some))
    taken = np.flatnonzero(place[documents] >= 0)
    words = _words(texts.take(pa.array(taken)))
    vocabulary = pc.unique(words.flatten()).filter(pc.not_equal(pc.unique(words.flatten()), ""))
    rows, runs = _runs(words, vocabulary)
    known, columns = np.unique(runs, return_inverse=True)

    def matrix(rows: NDArray[Any], columns: NDArray[Any], height: int) -> Any:
        """Mark the runs that documents have, each once."""
        made = csr_array((np.ones(len(rows), np.int32), (rows, columns)), (height, len(known)))
        made.data[:] = 1
        return made

    sought = matrix(place[documents[taken[rows]]], columns, len(some))
    sizes = np.zeros(number, np.int64)
    parts: list[tuple[NDArray[Any], NDArray[Any]]] = []
    for start in range(0, len(texts), ROWS):
        block = _words(texts.slice(start, ROWS))
        lengths = np.diff(np.from_dlpack(block.offsets))
        owners = documents[start : start + len(block)]
        np.add.at(sizes, owners, np.maximum(lengths - _RUN + 1, 1))
        rows, runs = _runs(block, vocabulary)
        at = np.minimum(np.searchsorted(known, runs), max(len(known) - 1, 0))
        same = known[at] == runs if len(known) else np.zeros(0, bool)
        parts.append((owners[rows[same]], at[same]))
    rows, columns = map(np.concatenate, zip(*parts, strict=True))
    shared = (matrix(rows, columns, number) @ sought.T).tocoo()
    one, other = shared.coords
    least = np.minimum(sizes[one], np.diff(sought.indptr)[other])
    near = (shared.data >= _SHARE * least) & (place[one] != other)
    copies = np.zeros(number, bool)
    copies[one[near & (place[one] < 0)]] = True
    among = near & (place[one] > other)
    for copy, first in sorted(zip(place[one[among]].tolist(), other[among].tolist(), strict=True)):
        copies[some[copy]] |= not copies[some[first]]
    return copies


def _words(texts: pa.ChunkedArray) -> pa.ListArray:
    """Split texts into words; a letter of a script without spaces is one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    spaced = pc.replace_substring_regex(pc.utf8_lower(texts), f"([{UNSPACED}])", r" \1 ")
    plain = pc.replace_substring_regex(spaced, r"[^\p{L}\p{M}\p{N}]+", " ")
    words = pc.utf8_split_whitespace(pc.utf8_trim_whitespace(plain))
    return pa.concat_arrays(words.chunks) if isinstance(words, pa.ChunkedArray) else words


def _runs(
    words: pa.ListArray, vocabulary: pa.Array
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Hash every run of words that the vocabulary has: its row, and 64 bits.

    A row of fewer words than a run is one run.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    codes = np.from_dlpack(
        pc.fill_null(pc.index_in(words.flatten(), value_set=vocabulary), pa.scalar(-1, pa.int32()))
    )
    offsets = np.from_dlpack(words.offsets).astype(np.int64)
    lengths = np.diff(offsets)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    starts, ends = offsets[rows] - offsets[0], offsets[rows + 1] - offsets[0]
    here = np.arange(len(codes))
    good = (here + _RUN <= ends) | (here == starts)
    hashes = np.zeros(len(codes), np.uint64)
    factors = np.random.default_rng(0).integers(2**63, size=_RUN, dtype=np.uint64) * 2 + 1
    for step, factor in enumerate(factors):
        inside = here + step < ends
        code = np.where(inside, codes[np.minimum(here + step, len(codes) - 1)], -2)
        good &= code != -1
        hashes += (code + 2).astype(np.uint64) * factor
    return rows[good], hashes[good]
