"""Similarity of two sentences by only their words, shown beside every encoder's score."""

from __future__ import annotations

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
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.preprocessing import normalize

    units, _ = units_of(pairs.texts)
    texts = [text for pair in pairs.pairs for text in (pair.sentence1, pair.sentence2)]
    counts = CountVectorizer(analyzer=lambda text: units(text) or [""]).fit_transform(texts)
    frequency = np.bincount(counts.indices, minlength=counts.shape[1])
    weighted = normalize(counts.multiply(np.log((len(texts) + 1) / (frequency + 1))).tocsr())
    cosines = np.asarray(weighted[::2].multiply(weighted[1::2]).sum(axis=1)).ravel()
    same = np.asarray(abs(counts[::2] - counts[1::2]).sum(axis=1)).ravel() == 0
    return np.where(same, 1.0, cosines)
