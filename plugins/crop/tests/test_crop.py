"""Which spans a text has, by the authors' code and by hand; which view gets which."""

from collections import Counter
from typing import Any

import pytest
from cse_crop.crop import spans
from cse_crop.options import CropOptions
from cse_testkit import compose, make_context, make_part, tiny_corpus

from cse_core.errors import CseError
from cse_core.types import View
from tests.shared import golden

TEXT = "One of two. Three is 3.14. Four. Five of them all."
VIEWS: Any = {"anchor": View("anchor", "anchor", "online"),
              "positive": View("positive", "positive", "online")}  # fmt: skip


def cropped(text: str, step: int = 0, log: Any = None, **options: Any) -> tuple[str, str]:
    part = make_part("aug", "crop", **options)
    ctx = make_context(step=step, log=log)
    (one,), (other,) = (part([text], None, VIEWS[name], ctx) for name in ("anchor", "positive"))
    return one, other


def test_spans_and_pairs_of_the_authors_code() -> None:
    """All spans of each text are equal; a text with fewer than two is one that it leaves out."""
    for case in golden("goldA")["crop"]["cases"]:
        count, kept = case["n_consecutive"], []
        for number, text in enumerate(case["texts"]):
            found = spans(text, count, 100, 250)
            assert (len(found) < 2) == (number in case["texts_left_out"])
            if len(found) > 1:
                kept.append(found)
        assert kept == case["packs_of_kept_texts"]
        for which, first, second in case["pairs_index_first_second"]:
            assert first != second and {first, second} <= {*kept[which]}


def test_spans_by_hand() -> None:
    """The stop of a number parts too; pieces that are too short or too long are skipped over."""
    assert spans(TEXT, 1, 0, 99) == [
        "One of two. ", "Three is 3. ", "14. ", "Four. ", "Five of them all. ", ". "
    ]  # fmt: skip
    assert spans(TEXT, 2, 5, 99) == [
        "One of two. Three is 3. ", "Three is 3. Four. ", "Four. Five of them all. "
    ]  # fmt: skip
    assert spans(TEXT, 2, 10, 11) == ["One of two. Three is 3. "]
    assert spans(TEXT, 1, 11, 12) == ["Three is 3. "], "with the blank before it"
    assert spans(TEXT, 2, 11, 12) == [] and spans("", 1, 0, 9) == [". "]


def test_both_views_have_different_spans_and_all_pairs_come() -> None:
    options = {"sentences": 2, "shortest": 5}
    every, drawn = spans(TEXT, 2, 5, 250), Counter[tuple[str, str]]()
    for step in range(600):
        one, other = cropped(TEXT, step, **options)
        drawn[one, other] += 1
    assert {*drawn} == {(a, b) for a in every for b in every if a != b}
    assert all(60 < count < 140 for count in drawn.values()), drawn


def test_what_is_drawn_depends_on_the_text_and_the_step_alone() -> None:
    part, ctx = make_part("aug", "crop", shortest=5), make_context(step=3)
    other = TEXT.replace("Four", "Nine, or so")
    both = part([TEXT, other], None, VIEWS["anchor"], ctx)
    assert part([other], None, VIEWS["anchor"], ctx) == both[1:]
    assert part([other, TEXT], None, VIEWS["anchor"], ctx) == both[::-1]
    each = [TEXT.replace("Four", f"Four or {number}") for number in range(30)]
    first = part(each, None, VIEWS["anchor"], ctx)
    places = [spans(text, 2, 5, 250).index(span) for text, span in zip(each, first, strict=True)]
    assert {*places} == {0, 1, 2}
    for other_ctx in (make_context(step=4), make_context(step=3, round=2)):
        assert part(each, None, VIEWS["anchor"], other_ctx) != first


def test_spans_of_words_where_a_text_has_no_two_of_sentences() -> None:
    words = [f"w{number}" for number in range(20)]
    log: dict[str, Any] = {}
    lengths, starts = Counter[int](), Counter[int]()
    for step in range(500):
        for span in cropped(" ".join(words), step, log, least=0.2, most=0.5):
            found = span.split()
            first = words.index(found[0])
            assert found == words[first : first + len(found)]
            lengths[len(found)] += 1
            starts[first] += 1
    assert {*lengths} == {*range(4, 11)} and min(starts) == 0 and max(starts) == 16
    assert log == {"crop.by_words": 1.0}
    one, other = cropped(" ".join(words), 1)
    assert one != other
    single = f"{'a b ' * 30}. {'c d ' * 30}. Short."
    assert len(spans(single, 2, 100, 250)) == 1
    one, other = cropped(single, 1, log)
    assert one != other and log == {"crop.by_words": 1.0}
    part = make_part("aug", "crop", shortest=5)
    part([TEXT, "two words"], None, VIEWS["anchor"], make_context(log=log))
    assert log == {"crop.by_words": 0.5}
    assert cropped("word") == ("word", "word")
    assert cropped(TEXT, 0, log, shortest=5) and log == {"crop.by_words": 0.0}
    assert cropped(TEXT, 0, log, shortest=5, unit="words") and log == {"crop.by_words": 1.0}


def test_the_plan_warns_of_views_of_two_texts() -> None:
    corpus = tiny_corpus(columns=("positive",))
    lines = compose(recipe="crop", sets=["views.positive.column=positive"], corpus=corpus).warnings
    assert any("anchor of column text, positive of column positive" in line for line in lines)
    made = compose(recipe="crop", corpus=corpus)
    assert [view.augmenters for view in made.views] == [("aug.crop",)] * 2
    assert not made.warnings[1:]


def test_defaults_are_those_of_the_authors_code() -> None:
    options = CropOptions()
    assert (options.sentences, options.shortest, options.longest) == (2, 100, 250)
    with pytest.raises(CseError, match="must not exceed"):
        compose(recipe="crop", sets=["aug.crop.shortest=300"])
