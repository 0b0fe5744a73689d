"""Words of texts: what counts as one, their ranking by BM25, and its fusion with vectors."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from cse_core.errors import CseError
from cse_core.files import atomic_folder
from cse_core.words import lacks_word_spaces

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Units = Callable[[str], list[str]]
_WORD = r"[\p{L}\p{N}_][\p{L}\p{M}\p{N}_]*"
_SOME = 1000


def words(text: str) -> list[str]:
    """Split a text into words, folded by case and compatibility (NFKC).

    Marks stay with their letters: the vowel signs of Hindi or the points of Hebrew end no word.
    """
    import regex  # with transformers; re knows no marks

    matches: list[str] = regex.findall(_WORD, unicodedata.normalize("NFKC", text).casefold())
    return matches


def character_ngrams(text: str) -> list[str]:
    """List the characters and pairs of neighbouring characters of each folded run."""
    return [
        run[start : start + size]
        for run in words(text)
        for size in (1, 2)
        for start in range(len(run) - size + 1)
    ]


def units_of(texts: Iterable[str]) -> tuple[Units, str]:
    """Choose what texts are compared by, and name it.

    Returns:
        Words; or character 1- and 2-grams where more than half of the letters belong to scripts
        written without spaces between words (Han, kana, Thai, …).
    """
    if lacks_word_spaces(texts):
        return character_ngrams, "character 1-2-grams"
    return words, "words"


@dataclass(frozen=True)
class Bm25:
    """Texts that are ranked by the words of a query: Lucene's BM25 by bm25s (Lù 2024).

    Words are folded by case; none is left out or stemmed. bm25s comes with ``cse-toolkit[bm25]``,
    which a plugin that ranks depends on.
    """

    ABOUT: ClassVar[dict[str, Any]] = {"method": "lucene", "k1": 1.5, "b": 0.75}

    _index: Any
    _units: Units
    _count: int

    @classmethod
    def of(cls, texts: Sequence[str], units: Units | None = None) -> Bm25:
        """Count the words of texts.

        Args:
            texts: The texts.
            units: Gives a text's words; by default ``units_of`` chooses.
        """
        import bm25s

        units, vocabulary = units or units_of(texts[:_SOME])[0], dict[str, int]()
        ids = [[vocabulary.setdefault(unit, len(vocabulary)) for unit in units(t)] for t in texts]
        index = bm25s.BM25(**cls.ABOUT)
        if vocabulary:
            index.index((ids, vocabulary), show_progress=False)
        return cls(index if vocabulary else None, units, len(texts))

    @classmethod
    def saved(cls, path: Path, texts: Callable[[], Sequence[str]]) -> Bm25:
        """Return the words that a folder holds; count and save them if it is not there.

        Where nothing can be written, they are counted each time.

        Raises:
            CseError: If the folder is damaged.
        """
        if not path.is_dir():
            made = cls.of(texts())
            if made._index is not None:
                try:
                    with atomic_folder(path) as beside:
                        made._index.save(beside, show_progress=False)
                        (beside / "units").write_text(made._units.__name__, encoding="utf-8")
                except (CseError, OSError):
                    pass
            return made
        import bm25s

        known = {kind.__name__: kind for kind in (words, character_ngrams)}
        try:
            index = bm25s.BM25.load(path, mmap=True, show_progress=False)
            units = known[(path / "units").read_text(encoding="utf-8")]
            return cls(index, units, index.scores["num_docs"])
        except (OSError, ValueError, KeyError, TypeError):
            raise CseError("is damaged", where=str(path), hint="delete this folder") from None

    def scores(self, query: str) -> NDArray[np.float32]:
        """Return the score of each text ``[N]``, 0 for one without a word of the query."""
        import numpy as np

        asked = self._units(query)
        if self._index is None or not asked:
            return np.zeros(self._count, np.float32)
        scores: NDArray[np.float32] = self._index.get_scores(asked)
        return scores

    def of_queries(self, queries: Sequence[str]) -> NDArray[np.float32]:
        """Return the scores ``[Q, N]`` of all queries."""
        import numpy as np

        return np.stack([self.scores(query) for query in queries])


def fuse(
    vectors: NDArray[np.floating], words: NDArray[np.floating], weight: float
) -> NDArray[np.floating]:
    """Return a weighted mean ``[Q, N]`` of both scores, each scaled for each query.

    The best text has 1 on both scales. 0 is the mean similarity of all texts, and a text without
    a word of the query. Such a mean ranks better than one of reciprocal ranks (Bruch et al., 2023,
    who take the least possible similarity as 0).

    Args:
        vectors: Similarities ``[Q, N]`` of queries and texts.
        words: Scores of BM25 ``[Q, N]``.
        weight: Of the words, 0 to 1.
    """
    import numpy as np

    def scaled(scores: NDArray[np.floating], zero: Any) -> NDArray[np.floating]:
        span = scores.max(axis=1, keepdims=True) - zero
        scaled: NDArray[np.floating] = (scores - zero) / np.where(span > 0, span, 1)
        return scaled

    near = scaled(vectors, vectors.mean(axis=1, keepdims=True))
    return (1 - weight) * near + weight * scaled(words, 0)
