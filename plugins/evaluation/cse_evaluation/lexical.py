"""Similarity of two sentences by only their words, shown beside every encoder's score."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
from numpy.typing import NDArray

from cse import units_of
from cse_evaluation.pairs import PairSet


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
