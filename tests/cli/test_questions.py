"""Questions that texts answer, their ranks and titles beside obvious loops."""

import numpy as np
import pytest

from cse import Bm25
from cse.questions import (
    Part,
    Questions,
    asking,
    by_half,
    by_sentence,
    by_title,
    by_titles,
    by_words,
    in_order,
    measures,
    parts_of,
    sentences,
    some_of_each,
    without_title,
)
from cse_defaults.texts import Corpus
from tests.fixtures.evaluation import HashEncoder
from tests.fixtures.titled import pieces

TEXT = "One two three four. Five! Six seven eight nine? Ten eleven twelve thirteen."


def test_sentences_and_titles_by_hand() -> None:
    assert sentences(TEXT) == [
        "One two three four.", "Five!", "Six seven eight nine?", "Ten eleven twelve thirteen."
    ]  # fmt: skip
    assert sentences("猫在这里。狗在那里！ 3.14 is pi.") == [
        "猫在这里。",
        "狗在那里！",
        "3.14 is pi.",
    ]
    assert without_title("One TWO", "one two: three") == "three"
    assert without_title("one two", "one two") == "one two" and without_title("", "a b") == "a b"
    assert without_title("two", "one two") == "one two"
    for title, text in (("Car", "Cars are vehicles"), ("Straße", "STRASSE ist lang")):
        assert without_title(title, text) == text
    assert without_title("北京", "北京是首都") == "是首都"
    assert by_title("Cats", "Cats. They sleep.") == ("Cats", "They sleep.")
    files = ("sub/cats.txt", "sub/cats.txt", "Cats", "17", "https://a.org/wiki/Cats")
    titles = ("cats", "Cats", "Cats", "", "Cats")
    assert asking(titles, files) == ["", *titles[1:]]
    assert by_title("", TEXT) is None and by_title("Cats", "Cats") is None


def test_a_sentence_asks_for_the_others() -> None:
    long = [0, 2, 3]
    pieces = sentences(TEXT)
    for draw in np.linspace(0, 0.999, 40):
        place = long[int(draw * 3)]
        rest = " ".join(pieces[:place] + pieces[place + 1 :])
        assert by_sentence("", TEXT, draw) == (pieces[place], rest)
        assert by_sentence("Head", f"Head. {TEXT}", draw) == (pieces[place], f"Head {rest}")
        assert by_sentence("", TEXT, draw, keep=True) == (pieces[place], TEXT)
    assert by_sentence("", "Only one sentence is here.", 0.5) is None
    assert by_sentence("", "Too short. To ask.", 0.5) is None
    assert by_sentence("", "猫在这里睡觉休息很久很久。狗。", 0.0) == (
        "猫在这里睡觉休息很久很久。",
        "狗。",
    )


def test_halves_and_spans_of_words() -> None:
    assert by_half("a b c d e f g h i") == ("a b c d", "e f g h i")
    assert by_half("a b c d e f g") is None
    assert by_words("a b c d e", (0.0, 0.99)) == ("a b c", "c d e")
    assert by_words("a b c d e", (0.4, 0.6)) == ("b c d", "b c d")
    assert by_words("word", (0.5, 0.5)) == ("word", "word")
    long = "“刀锋杀手”皮斯托瑞斯否认谋杀指控，并说他不知道。"
    assert by_half(long) == (long[:12], long[12:]) and by_half(long[:20]) is None
    assert by_words(long, (0.0, 0.99)) == (long[:13], long[12:])
    assert by_half("한국어 문장은 띄어 쓴다") is None, "Korean has spaces"
    assert by_half("a b c d e f g h i 皮斯托瑞斯") == ("a b c d e", "f g h i 皮斯托瑞斯")


def test_words_in_random_order_are_noticed() -> None:
    draws = np.random.default_rng(0)

    def texts(recurring: float) -> list[str]:
        """Return texts in which some words are followed by the next of a circle of 400."""
        jumps = draws.random((100, 80)) >= recurring
        words = draws.integers(400, size=(100, 80))
        for place in range(1, 80):
            last = words[:, place - 1]
            words[:, place] = np.where(jumps[:, place], words[:, place], (last + 1) % 400)
        return [" ".join(map(str, row)) for row in words]

    assert in_order(texts(0.2)) and not in_order(texts(0))
    assert in_order(texts(0)[:50]), "too few to say"


def test_ranks_measures_and_agreement_are_those_of_a_loop() -> None:
    texts, encoder = tuple(pieces(30)), HashEncoder()
    owners = tuple(number % 12 if number < 24 else -1 for number in range(30))
    asked = Questions(texts, owners, tuple((n, texts[n + 12][:20]) for n in range(12)))
    scores = asked.scores(encoder, asked.vectors(encoder))
    ranks = asked.ranks(scores)
    for place, (document, question) in enumerate(asked.asked):
        one = encoder.vector(question)
        near = [float(one @ encoder.vector(t) / np.linalg.norm(one)
                      / np.linalg.norm(encoder.vector(t))) for t in texts]  # fmt: skip
        assert scores[place] == pytest.approx(near, abs=1e-6)
        best = max(near[n] for n in range(30) if owners[n] == document)
        rank = sum(near[n] >= best for n in range(30) if owners[n] != document)
        assert ranks[place] == rank
        gain = 1 / np.log2(rank + 2) if rank < 10 else 0.0
        assert measures(ranks)["ndcg@10"][place] == pytest.approx(gain)
        assert measures(ranks)["mrr"][place] == pytest.approx(1 / (rank + 1))
        words = Bm25.of(texts).scores(question)
        both = [{*sorted(range(30), key=lambda n: -v[n])[:10]} for v in (near, words)]  # noqa: B023
        assert asked.agreement(scores)[place] == pytest.approx(len(both[0] & both[1]) / 10)


def test_a_title_asks_only_if_no_other_document_has_it() -> None:
    heads = ["One", "two", "Two", "three", "four", "Five", "four"]
    parts = [Part(n if n < 6 else 4, head, f"{head} x{n}", f"x{n}") for n, head in enumerate(heads)]
    rows = Corpus.from_columns({"text": ["Five y", "z"], "title": ["FIVE", ""]})
    made = by_titles(parts, {1, 2, 3, 4, 5}, rows, 2)
    assert made.asked == ((3, "three"), (4, "four"))
    assert made.texts == (*(f"x{n}" for n in range(7)), "y", "z")
    assert made.owners == (-1, -1, -1, 3, 4, -1, 4, -1, -1)
    assert by_titles(parts, {5}).asked == ((5, "Five"),)


def test_rows_without_a_document_are_documents_of_their_own() -> None:
    columns = {"text": ["A a", "b", "c", "d"], "title": ["A", "notes", "", "x"],
               "document": ["f", "notes.md", "", ""]}  # fmt: skip
    parts = parts_of(Corpus.from_columns(columns))
    assert [part.document for part in parts] == [0, 1, 2, 3]
    assert [(part.title, part.body) for part in parts] == [
        ("A", "a"),
        ("", "b"),
        ("", "c"),
        ("x", "d"),
    ]


def test_parts_that_stand_for_a_document_are_drawn_by_their_texts() -> None:
    parts = [Part(row // 5, "", text, text) for row, text in enumerate(pieces(20))]
    kept = some_of_each(parts, 2)
    assert [part.document for part in kept] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert kept == [part for part in parts if part in kept] != [*parts[::5], *parts[1::5]]
    assert len({parts.index(part) % 5 for part in kept}) > 2, "not the first ones"
    turned = some_of_each(parts[::-1], 2)
    assert turned == kept[::-1] and some_of_each(parts, 5) == parts
    assert some_of_each([parts[0]] * 3, 2) == parts[:1], "copies are one"
