"""Similarity of two sentences by their words alone, shown beside every encoder's score."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from cse import lacks_word_spaces
from cse_evaluation.pairs import PairSet

Units = Callable[[str], list[str]]

_WORD = re.compile(r"\w+")


def words(text: str) -> list[str]:
    """Return the lower-cased words."""
    return _WORD.findall(text.lower())


def character_ngrams(text: str) -> list[str]:
    """Return the characters and pairs of neighbouring characters of each lower-cased run."""
    return [
        run[start : start + size]
        for run in words(text)
        for size in (1, 2)
        for start in range(len(run) - size + 1)
    ]


def units_of(texts: Iterable[str]) -> tuple[Units, str]:
    """Choose what sentences are compared by, and name it.

    Returns:
        Words; or character 1- and 2-grams where more than half of the letters belong to scripts
        written without spaces between words (Han, kana, Thai, …).
    """
    if lacks_word_spaces(texts):
        return character_ngrams, "character 1-2-grams"
    return words, "words"


def jaccard(pairs: PairSet) -> NDArray[np.float64]:
    """Return the shared part of both sentences' sets of words, of each pair: ``[P]`` in [0, 1].

    Sentences without a word are 1 where they are equal, else 0.
    """
    units, _ = units_of(pairs.texts)
    bags = {text: frozenset(units(text)) for text in pairs.texts}
    values = []
    for pair in pairs.pairs:
        first, second = bags[pair.sentence1], bags[pair.sentence2]
        together = len(first | second)
        same = float(pair.sentence1 == pair.sentence2)
        values.append(len(first & second) / together if together else same)
    return np.array(values)


def tfidf(pairs: PairSet) -> NDArray[np.float64]:
    """Return the cosine of both sentences' TF-IDF vectors, of each pair: ``[P]`` in [0, 1].

    A word's weight is its count times log((N + 1) / (df + 1)), where df of the N sentences of the
    pairs, as often as they stand there, have the word. Equal bags of words have the cosine 1,
    others of which one has no weight 0.
    """
    units, _ = units_of(pairs.texts)
    documents = [text for pair in pairs.pairs for text in (pair.sentence1, pair.sentence2)]
    frequency = Counter(unit for text in documents for unit in set(units(text)))
    bags = {text: Counter(units(text)) for text in pairs.texts}
    weighted = {
        text: {
            unit: count * math.log((len(documents) + 1) / (frequency[unit] + 1))
            for unit, count in bag.items()
        }
        for text, bag in bags.items()
    }
    lengths = {
        text: math.sqrt(sum(weight * weight for weight in bag.values()))
        for text, bag in weighted.items()
    }
    values = []
    for pair in pairs.pairs:
        first, second = weighted[pair.sentence1], weighted[pair.sentence2]
        length = lengths[pair.sentence1] * lengths[pair.sentence2]
        if bags[pair.sentence1] == bags[pair.sentence2]:
            values.append(1.0)
        elif length == 0:
            values.append(0.0)
        else:
            values.append(sum(w * second.get(unit, 0.0) for unit, w in first.items()) / length)
    return np.array(values)
