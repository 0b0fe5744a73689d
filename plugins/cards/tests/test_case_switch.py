"""Which letters change their case, how many, and on which vocabularies."""

from typing import Any

import pytest
from cse_testkit import compose, make_context, make_part

from cse_core.types import View
from tests.fixtures.methods import refusal

TEXT = "Thebes held onto power until the 12th Dynasty, when its  first king reigned 'there'."
VIEW = View("positive", "positive", "online")


def switched(texts: list[str], step: int = 0, **options: Any) -> list[str]:
    part = make_part("aug", "case-switch", **options)
    found: list[str] = part(texts, None, VIEW, make_context(step=step))
    return found


def changed(text: str, other: str) -> list[int]:
    """Return the places where two texts differ; all else is the same."""
    assert len(text) == len(other)
    places = [i for i, (one, two) in enumerate(zip(text, other, strict=True)) if one != two]
    for place in places:
        assert other[place] == text[place].swapcase()
        assert place == 0 or text[place - 1].isspace(), "the first letter of a word"
    return places


def test_v1_switches_exactly_so_many() -> None:
    for words, rate, count in ((1, 0.05, 1), (10, 0.05, 1), (30, 0.1, 3), (50, 0.05, 2),
                               (34, 0.05, 2)):  # fmt: skip
        text = " ".join(f"word{number}" for number in range(words))
        for step in range(5):
            (found,) = switched([text], step, rate=rate, variant="v1")
            assert len(changed(text, found)) == count == max(1, round(rate * words))


def test_v1_counts_all_words_and_switches_those_with_a_letter() -> None:
    text = "1 2 3 4 5 6 7 8 one 'two'"
    (found,) = switched([text], rate=0.5, variant="v1")
    assert changed(text, found) == [16], "five expected, one begins with a letter"
    assert switched(["12 ... 'a'", ""], rate=0.5, variant="v1") == ["12 ... 'a'", ""]


def test_v2_switches_each_word_by_itself() -> None:
    text = " ".join(["word"] * 50)
    for rate in (0.0, 0.2, 1.0):
        counts = [len(changed(text, switched([text], step, rate=rate)[0])) for step in range(40)]
        assert sum(counts) / 2000 == pytest.approx(rate, abs=0.03)
        assert (len(set(counts)) > 5) == (rate == 0.2), "and not always the same number"


def test_all_words_of_a_text() -> None:
    (found,) = switched([TEXT], rate=1.0)
    assert found == (
        "thebes Held Onto Power Until The 12th dynasty, When Its  First King Reigned 'there'."
    )
    assert switched(["ßa 中文 ǆ éa"], rate=1.0)[0] == "ßa 中文 Ǆ Éa"


def test_asked_for_by_name_it_refuses_an_uncased_vocabulary() -> None:
    for recipe in ("simcse", "cards"):
        line = refusal(compose, recipe=recipe, kinds={"aug": ["case-switch"]})
        assert line.startswith("aug.case-switch: needs a vocabulary that keeps capital letters")
        assert "lower-cases" in line and "--aug ~case-switch" in line
