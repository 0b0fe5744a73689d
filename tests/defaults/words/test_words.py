"""Words of texts, their stems and BM25."""

from io import BytesIO
from typing import Any

import bm25s
import numpy as np
import pytest

from cse_defaults.words.bm25 import Bm25, stem_languages, terms, words

ENGLISH = ["the lamps of the gardens were old", "a boat is on the sea", "nothing is known of it"]
GERMAN = ["die alten Gärten und die Lampen", "ein Boot ist auf der See", "es ist nichts bekannt"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don't STOP_it, ﬁne", ["don", "t", "stop_it", "fine"]),
        ("GPU泵 电机", ["gpu", "泵", "电", "机", "电机"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("한국어 문장은", ["한국어", "문장은"]),
        (
            "猫はカーです",
            ["猫", "は", "カ", "ー", "で", "す", "猫は", "はカ", "カー", "ーで", "です"],
        ),
        ("ไทย abc", ["ไ", "ท", "ย", "ไท", "ทย", "abc"]),
        ("Ⅻ Straße", ["xii", "strasse"]),
        ("", []),
    ],
)
def test_terms_are_words_or_characters(text: str, expected: list[str]) -> None:
    assert sorted(terms(text)) == sorted(expected)


def test_scores_are_those_of_bm25s() -> None:
    draw = np.random.default_rng(0)
    texts = [" ".join(draw.choice(list("abcdefgh"), size)) for size in draw.integers(0, 9, 40)]
    known: dict[str, int] = {}
    ids = [[known.setdefault(word, len(known)) for word in words(text)] for text in texts]
    theirs: Any = bm25s.BM25(**Bm25.ABOUT)
    theirs.index((ids, known), show_progress=False)
    ours = Bm25.of(texts)
    for query in ("a b a", "h", "d unknown g g"):
        asked = [word for word in words(query) if word in known]
        np.testing.assert_allclose(ours.scores(query), theirs.get_scores(asked), atol=1e-6)
    file = BytesIO()
    ours.save(file)
    file.seek(0)
    np.testing.assert_array_equal(Bm25.load(file).scores("a b"), ours.scores("a b"))
    assert not Bm25.of(["", "?"]).scores("a").any() and len(Bm25.of([]).scores("a")) == 0


def test_each_text_has_the_stems_of_its_language() -> None:
    found = Bm25.of([*ENGLISH, *GERMAN, "电机是新的"], stems=None)
    assert found.languages == ("english", "german") or found.languages == ("german", "english")
    for query, best in (("garden lamp", 0), ("Garten Lampe", 3), ("电机", 6)):
        assert found.scores(query).argmax() == best, query
        assert not Bm25.of(ENGLISH + GERMAN).scores(query)[[0, 3]].any()
    assert Bm25.of(ENGLISH, stems=["german"]).languages == ("german",)
    assert Bm25.of(["12", "x"], stems=None).languages == ()


def test_every_language_has_a_stemmer() -> None:
    from Stemmer import algorithms

    found = stem_languages()
    assert {*found} <= {*algorithms()} and len(found) >= 20
    for name, frequent in found.items():
        assert len({*frequent}) >= 15, name
        assert all(terms(word) == [word] for word in frequent), name
