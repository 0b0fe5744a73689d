from __future__ import annotations

import math

import numpy as np
import pytest
from cse_evaluation.lexical import (
    TextCollection,
    character_ngrams,
    jaccard,
    own_sentences,
    tfidf,
    units_of,
    words,
)
from cse_evaluation.pairs import PairSet, pairs_from_rows, read_pairs
from cse_evaluation.sts import score_words

from tests.shared import shared_path


def made(*pairs: tuple[str, str]) -> PairSet:
    return pairs_from_rows(
        "made",
        [{"sentence1": a, "sentence2": b, "score": i} for i, (a, b) in enumerate(pairs)],
    )


def test_jaccard_of_lower_cased_word_sets() -> None:
    pairs = made(("A cat sat.", "a CAT, a cat ran"), ("...", "!!!"), ("--", "--"), ("x", "y"))
    np.testing.assert_allclose(jaccard(pairs), [2 / 4, 0.0, 1.0, 0.0])


def test_tfidf_equals_the_formula_by_hand() -> None:
    pairs = made(("red fox fox", "red dog"), ("same words", "Words, same!"))
    texts = ["red apple", "red fox", "dog", "pear"]
    n = len(texts)
    red, fox, dog = (math.log((n + 1) / (df + 1)) for df in (2, 1, 1))
    expected = red * red / (math.hypot(red, 2 * fox) * math.hypot(red, dog))
    values = tfidf(pairs, TextCollection("made", texts))
    np.testing.assert_allclose(values, [expected, 1.0])


def test_tfidf_without_weights() -> None:
    # in its own sentences "the" is in all four, so it weighs nothing
    pairs = made(("the", "the cat"), ("the", "The"))
    np.testing.assert_allclose(tfidf(pairs), [0.0, 1.0])


def test_unseen_words_keep_the_highest_weight() -> None:
    pairs = made(("zebra common", "zebra"), ("common", "other"))
    values = tfidf(pairs, TextCollection("made", ["common"] * 9 + ["rare"]))
    assert values[0] > 0.99


def test_chinese_and_japanese_are_compared_by_characters() -> None:
    assert units_of(["一个人在跳舞。", "GPU"]) == (character_ngrams, "character 1-2-grams")
    assert units_of(["これは猫です"])[0] is character_ngrams
    assert units_of(["The word 猫 is Japanese"])[0] is words
    assert units_of(["한국어 문장은 띄어 쓴다"])[0] is words
    assert character_ngrams("跳舞。ab") == ["跳", "舞", "跳舞", "a", "b", "ab"]
    pairs = made(("孩子在骑马", "小孩在骑马"), ("天气很好", "他在吃饭"))
    values = jaccard(pairs)
    assert values[0] > 0.4 > values[1]


def test_known_scores_on_stsb() -> None:
    train = read_pairs(shared_path("data/sts/stsb.train.tsv.gz"))
    idf = TextCollection("stsb.train", own_sentences(train))
    for name, by_tfidf, by_jaccard in (("stsb.dev", 75.9, 65.3), ("stsb.test", 68.2, 56.5)):
        score = score_words(read_pairs(shared_path(f"data/sts/{name}.tsv.gz")), idf)
        assert score.tfidf == pytest.approx(by_tfidf, abs=0.1)
        assert score.jaccard == pytest.approx(by_jaccard, abs=0.1)
        assert (score.idf, score.units) == ("stsb.train", "words")


def test_chinese_file_is_scored_by_characters() -> None:
    score = score_words(read_pairs(shared_path("data/chinese/cstsb.dev.tsv.gz")))
    assert score.units == "character 1-2-grams"
    assert score.tfidf is not None and score.tfidf > 60
