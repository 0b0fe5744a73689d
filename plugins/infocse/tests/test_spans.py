"""Where spans, contexts and masks lie, how long they are, and how often: drawn many times."""

from collections import Counter

import numpy as np
from cse_infocse.options import SpanOptions
from cse_infocse.span import _draw
from cse_testkit import make_context, make_part

from cse_core.types import View
from plugins.infocse.tests.made_up import corpus_of, mined, numbers_in
from tests.fixtures.methods import round_context

Drawn = list[list[tuple[int, int]]]


def drawn(words: int, longest: int, count: int, **options: int) -> Drawn:
    """Return anchors and positives of ``count`` documents of so many words."""
    draws = np.random.default_rng(7)
    made = SpanOptions.model_validate(options)
    return [_draw(draws, words, longest, made) for _ in range(count)]


def test_lengths_of_spans_are_those_of_declutr() -> None:
    """Anchors by beta(4, 2), positives by beta(2, 4), between the shortest and the longest."""
    found = drawn(300, 104, 4000, shortest=4)
    anchors = np.array([end - begin for (begin, end), *_ in found])
    positives = np.array([end - begin for _, *near in found for begin, end in near])
    assert len(positives) == 2 * len(anchors)
    for lengths, mean in ((anchors, 4 + 100 * 4 / 6), (positives, 4 + 100 * 2 / 6)):
        assert 4 <= lengths.min() < lengths.max() <= 104
        assert abs(lengths.mean() - mean) < 1.2
        assert abs(lengths.std() - 100 * (8 / 36 / 7) ** 0.5) < 0.8
    gaps = [(b - end, begin - e) for (begin, end), *near in found for b, e in near]
    assert max(max(gap) for gap in gaps) == 0, "some touch, none lies apart"
    assert {0} <= {gap for gap, _ in gaps} and {0} <= {gap for _, gap in gaps}


def test_lengths_are_rounded() -> None:
    """Beta(4, 2) is above a half in 26 of 32 draws: then an anchor of 4 or 5 words has 5."""
    lengths = Counter(end - begin for (begin, end), *_ in drawn(20, 5, 4000, shortest=4))
    assert set(lengths) == {4, 5} and abs(lengths[5] / 4000 - 26 / 32) < 0.03


def test_an_anchor_lies_anywhere() -> None:
    begins = Counter(own[0][0] for own in drawn(9, 4, 3000, shortest=4))
    assert sorted(begins) == [0, 1, 2, 3, 4, 5]
    assert max(abs(count - 500) for count in begins.values()) < 100


def test_a_positive_begins_just_before_its_anchor_or_later_until_just_behind_it() -> None:
    apart: dict[int, Counter[int]] = {}
    for (begin, _), *near in drawn(20, 4, 6000, shortest=4):
        for start, end in near:
            assert end - start == 4
            apart.setdefault(begin, Counter())[start - begin] += 1
    assert sorted(apart) == list(range(17))
    for begin, found in apart.items():
        assert sorted(found) == list(range(max(-4, -begin), min(4, 16 - begin) + 1))
    middle = sum((apart[begin] for begin in range(4, 13)), Counter[int]())
    usual = middle.total() / 9
    assert max(abs(count - usual) for count in middle.values()) < 0.2 * usual


def test_a_document_has_two_anchors_of_two_positives() -> None:
    for combine, count in (("mean", 2), ("separate", 4)):
        pairs = mined("span", corpus_of(6, 5), combine=combine, shortest=2, longest=30)
        assert Counter(pairs["document"].tolist()) == {0: count, 1: count}
        if combine == "separate":
            texts = list(pairs["text"])
            assert [texts[i] == texts[i + 1] for i in range(0, 8, 2)] == [True] * 4
            assert len(set(pairs["positive"])) > 6, "each positive is drawn for itself"
        assert len({*pairs["text"]}) == 4
        for text, positive, document in zip(*pairs.values(), strict=True):
            near = positive.split("[SEP]")
            assert len(near) == (2 if combine == "mean" else 1)
            half = (12, 10)[document]
            assert all(2 <= len(span.split()) <= half for span in (text, *near)), "half a document"


WINDOWS = {
    4: {0: [1, 2, 3, 4], 1: [0, 2, 3, 4], 2: [0, 1, 3, 4], 5: [3, 4, 6, 7], 7: [3, 4, 5, 6]},
    3: {0: [1, 2, 3], 1: [0, 2, 3], 4: [3, 5, 6], 6: [4, 5, 7], 7: [4, 5, 6]},
    1: {0: [1], 4: [5], 7: [6]},
    None: {0: [1, 2, 3, 4, 5, 6, 7], 3: [0, 1, 2, 4, 5, 6, 7], 7: [0, 1, 2, 3, 4, 5, 6]},
}


def test_a_cloze_stands_half_before_and_half_behind() -> None:
    corpus = corpus_of(8, 2)
    for sentences, windows in WINDOWS.items():
        for keep in (0.0, 1.0):
            pairs = mined("inverse-cloze", corpus, keep=keep, sentences=sentences)
            both = zip(pairs["text"], pairs["positive"], strict=True)
            found = {numbers_in(text)[0]: numbers_in(around) for text, around in both}
            wanted = {**windows, 8: [9], 9: [8]}
            if keep:
                wanted = {own: sorted([own, *around]) for own, around in wanted.items()}
            assert {place: found[place] for place in wanted} == wanted
            assert len(found) == 10 and corpus.documents is not None
            own = [numbers_in(text)[0] for text in pairs["text"]]
            assert np.array_equal(pairs["document"], corpus.documents[own])


def test_preceding_context_comes_before() -> None:
    for sentences in (3, None):
        pairs = mined("preceding-context", corpus_of(6, 2), sentences=sentences)
        both = zip(pairs["text"], pairs["positive"], strict=True)
        found = [(numbers_in(text)[0], numbers_in(before)) for text, before in both]
        wanted = [(own, [*range(own)][-(sentences or 9) :]) for own in range(1, 6)]
        assert found == [*wanted, (7, [6])]


def test_a_tenth_of_the_clozes_keep_their_sentence() -> None:
    part = make_part("positives", "inverse-cloze", pairs_per_document=None)
    pairs = part.next_round(round_context(corpus_of(3000))).pairs
    both = zip(pairs["text"], pairs["positive"], strict=True)
    kept = [numbers_in(text)[0] in numbers_in(around) for text, around in both]
    assert 240 < sum(kept) < 360 and kept != sorted(kept, reverse=True)


def test_a_mask_lies_anywhere() -> None:
    """Texts of 30 characters and more lose 5 in a row, shorter ones none."""
    part = make_part("aug", "span-mask")
    view = View("positive", "positive", "online")
    text = "abcdefghijklmnopqrstuvwxyz0123"
    found = part([text] * 4000 + [text[:29]], None, view, make_context())
    assert found.pop() == text[:29]
    begins = Counter(each.index(" [MASK] ") for each in found)
    assert sorted(begins) == list(range(26))
    assert max(abs(count - 4000 / 26) for count in begins.values()) < 60
    for masked in found:
        left, right = masked.split(" [MASK] ")
        assert len(left) + len(right) == 25 and text.startswith(left) and text.endswith(right)
