"""Words of texts: what counts as one, their ranking by BM25, and its fusion with vectors."""

from __future__ import annotations

import json
import re
import tomllib
import unicodedata
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ClassVar

from cse_core.words import lacks_word_spaces

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Units = Callable[[str], list[str]]
_WORD = r"[\p{L}\p{N}_][\p{L}\p{M}\p{N}_]*"
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Myanmar}\p{Khmer}"
_RUN = (
    rf"(?V1)[[\p{{L}}\p{{N}}_]--[{_UNSPACED}]][[\p{{L}}\p{{M}}\p{{N}}_]--[{_UNSPACED}]]*"
    rf"|([{_UNSPACED}][{_UNSPACED}\p{{M}}\u30fc]*)"
)
"""A word, or a run of a script that is written without spaces between words."""
_SPECIAL = rf"[\p{{M}}{_UNSPACED}]"
_RARE = 0.01
"""Share of the texts below which a language that is guessed is taken for the main one."""


def words(text: str) -> list[str]:
    """Split a text into words, folded by case and compatibility (NFKC).

    Marks stay with their letters: the vowel signs of Hindi or the points of Hebrew end no word.
    """
    import regex  # with transformers; re knows no marks

    matches: list[str] = regex.findall(_WORD, _folded(text))
    return matches


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def character_ngrams(text: str) -> list[str]:
    """List the characters and pairs of neighbouring characters of each folded run."""
    return [gram for run in words(text) for gram in _ngrams(run)]


def _ngrams(run: str) -> list[str]:
    return [run[start : start + size] for size in (1, 2) for start in range(len(run) - size + 1)]


def terms(text: str) -> list[str]:
    """Split a text into folded words, and into characters and pairs of them in other scripts.

    Those are the scripts without spaces between words (Han, kana, Thai, …); a text may mix both.
    """
    import regex

    folded = text.lower() if text.isascii() else _folded(text)
    if text.isascii() or not regex.search(_SPECIAL, folded):
        return re.findall(r"\w+", folded)  # the same, in a third of the time
    runs = regex.finditer(_RUN, folded)
    return [term for run in runs for term in (_ngrams(run[0]) if run[1] else [run[0]])]


def units_of(texts: Iterable[str]) -> tuple[Units, str]:
    """Choose what texts are compared by, and name it.

    Returns:
        Words; or character 1- and 2-grams where more than half of the letters belong to scripts
        written without spaces between words (Han, kana, Thai, …).
    """
    if lacks_word_spaces(texts):
        return character_ngrams, "character 1-2-grams"
    return words, "words"


def stem_languages() -> dict[str, list[str]]:
    """Return the languages whose words can be stemmed, with frequent words of each."""
    path = Path(__file__).with_suffix(".toml")
    return {name: terms(said) for name, said in tomllib.loads(path.read_text("utf-8")).items()}


@dataclass(frozen=True)
class Bm25:
    """Texts that are ranked by the words of a query: Lucene's BM25 (Kamphuis et al., 2020).

    A query's score is the sum over its words, each word as often as it stands there.

    Attributes:
        languages: Those whose stems are counted (Snowball's, by PyStemmer, which comes with
            ``cse-toolkit[bm25]``), the main one first; none where words are counted as they are.
    """

    ABOUT: ClassVar[dict[str, Any]] = {"method": "lucene", "k1": 1.5, "b": 0.75}

    languages: tuple[str, ...]
    _units: Units
    _vocabulary: dict[str, int]
    _starts: NDArray[np.int64]
    _texts: NDArray[np.int32]
    _scores: NDArray[np.float32]
    _count: int

    @classmethod
    def of(
        cls, texts: Iterable[str], units: Units = terms, stems: Sequence[str] | None = ()
    ) -> Bm25:
        """Count the words of texts.

        Args:
            texts: The texts.
            units: Gives a text's words.
            stems: Languages of the stems that are counted in place of words; each text has the one
                whose frequent words it has most of. None chooses among all.
        """
        import numpy as np

        known = dict[str, int]()
        ids, lengths = array("i"), array("i")
        for text in texts:
            row = [known.setdefault(unit, len(known)) for unit in units(text)]
            ids.extend(row)
            lengths.append(len(row))
        size, term = (np.frombuffer(numbers, np.int32) for numbers in (lengths, ids))
        count, owner = len(size), np.repeat(np.arange(len(size), dtype=np.int32), size)
        used, language = _languages_of(known, owner, term, count, stems)
        if used:
            every, known = list(known), {}
            table = [
                [known.setdefault(stem, len(known)) for stem in _stemmed(name, every)]
                for name in used
            ]
            term = np.array(table, np.int32)[language[owner], term]
        cells = term * np.int64(count) + owner
        cells.sort()
        starts = np.flatnonzero(np.diff(cells, prepend=-1))  # in place, which np.unique is not
        often = np.diff(starts, append=len(cells)).astype(np.int32)
        term, of = (part.astype(np.int32) for part in np.divmod(cells[starts], max(count, 1)))
        having = np.bincount(term, minlength=len(known))
        rarity = np.log(1 + (count - having + 0.5) / (having + 0.5))
        k1, b = cls.ABOUT["k1"], cls.ABOUT["b"]
        weight = k1 * (1 - b + b * size / (size.mean() if len(ids) else 1))
        scores = (rarity[term] * often / (often + weight[of])).astype(np.float32)
        return cls(used, units, known, np.append(0, having.cumsum()), of, scores, count)

    def save(self, file: IO[bytes]) -> None:
        """Write what ``terms`` and their stems gave to a file of numpy (npz)."""
        import numpy as np

        said = json.dumps([self._count, self.languages, list(self._vocabulary)])
        np.savez(file, starts=self._starts, texts=self._texts, scores=self._scores,
                 said=np.frombuffer(said.encode(), np.uint8))  # fmt: skip

    @classmethod
    def load(cls, file: IO[bytes]) -> Bm25:
        """Read what ``save`` wrote."""
        import numpy as np

        with np.load(file) as saved:
            count, used, known = json.loads(saved["said"].tobytes())
            vocabulary = {term: number for number, term in enumerate(known)}
            arrays = saved["starts"], saved["texts"], saved["scores"]
            return cls(tuple(used), terms, vocabulary, *arrays, count)

    def scores(self, query: str) -> NDArray[np.float32]:
        """Return the score of each text ``[N]``, 0 for one without a word of the query.

        In texts of several languages a word counts by its stem in each of them.
        """
        import numpy as np

        asked, scores = self._units(query), np.zeros(self._count, np.float32)
        if self.languages:
            stems = zip(*(_stemmed(name, asked) for name in self.languages), strict=True)
            asked = [stem for word in stems for stem in dict.fromkeys(word)]
        for term in (self._vocabulary[term] for term in asked if term in self._vocabulary):
            some = slice(self._starts[term], self._starts[term + 1])
            scores[self._texts[some]] += self._scores[some]
        return scores

    def of_queries(self, queries: Sequence[str]) -> NDArray[np.float32]:
        """Return the scores ``[Q, N]`` of all queries."""
        import numpy as np

        return np.stack([self.scores(query) for query in queries])


def _stemmed(language: str, words: list[str]) -> list[str]:
    from Stemmer import Stemmer

    return list(Stemmer(language).stemWords(words))


def _languages_of(
    known: dict[str, int],
    owner: NDArray[np.int32],
    term: NDArray[np.int32],
    count: int,
    stems: Sequence[str] | None,
) -> tuple[tuple[str, ...], NDArray[np.intp]]:
    """Guess each text's language by its frequent words.

    A text without such words, or with as many of another language, and one in a language that is
    rare among the texts have the main one.

    Args:
        known: The words, with their numbers.
        owner: The text ``[T]`` of each word that stands somewhere.
        term: Its number ``[T]``.
        count: Of the texts.
        stems: The languages to choose among; None for all.

    Returns:
        The languages, the main one first, and the place among them of each text's ``[N]``.
    """
    import numpy as np

    every = stem_languages()
    names = [*(every if stems is None else stems)]
    if len(names) < 2:
        return tuple(names), np.zeros(count, np.intp)
    marks = np.zeros((len(names), count), np.int32)
    for number, name in enumerate(names):
        frequent = np.zeros(len(known), bool)
        frequent[[known[word] for word in every[name] if word in known]] = True
        marks[number] = np.bincount(owner[frequent[term]], minlength=count)
    first, second = np.partition(marks, -2, axis=0)[[-1, -2]]
    guess = np.where(first > second, marks.argmax(axis=0), -1)
    shares = np.bincount(guess + 1, minlength=len(names) + 1)[1:]
    used = [number for number in np.argsort(-shares, kind="stable")
            if shares[number] > _RARE * shares.sum()]  # fmt: skip
    places = {number: place for place, number in enumerate(used)}
    language = np.array([places.get(number, 0) for number in range(-1, len(names))])
    return tuple(names[number] for number in used), language[guess + 1]


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
