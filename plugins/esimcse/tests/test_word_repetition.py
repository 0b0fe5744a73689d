"""Which tokens are repeated, how many, and when they are drawn."""

from collections import Counter
from dataclasses import replace
from itertools import groupby, product
from typing import Any

import pytest
import torch
from cse_testkit import make_context, make_part, make_setup

from cse_core.types import StepContext, TokenBatch, View
from tests.fixtures.token_rows import token_rows

VIEW = View("positive", "positive", "online")


def repeated(x: TokenBatch, ctx: StepContext | None = None, **options: Any) -> TokenBatch:
    part = make_part("aug", "word-repetition", **options)
    return part(x, x, VIEW, ctx or make_context())


def of_row(x: TokenBatch, row: int, what: str = "ids") -> list[int]:
    found: list[int] = getattr(x, what)[int(x.offsets[row]) : int(x.offsets[row + 1])].tolist()
    return found


def added(before: TokenBatch, after: TokenBatch) -> list[int]:
    counts: list[int] = (after.lengths - before.lengths).tolist()
    return counts


def test_copies_stand_behind_what_they_copy() -> None:
    """Each row beside a loop over its units, a repeated one twice."""
    before = token_rows(0, 1, 9, 30, 4, 17, words=3)
    for unit, when, count in product(("token", "word"), ("step", "once"), ("paper", "code")):
        after = repeated(before, unit=unit, when=when, count=count)
        assert torch.equal(after.owner, before.owner) and torch.equal(after.slot, before.slot)
        assert sum(added(before, after)) > 0
        for row in range(before.rows):
            ids, words = of_row(before, row), of_row(before, row, "word")
            times = Counter(of_row(after, row))
            assert set(times) == set(ids) and max(times.values()) <= 2
            assert times[2] == times[3] == 1, "special tokens once"
            wanted: list[int] = []
            units = list(zip(ids, words if unit == "word" else ids, strict=True))
            for (_, special), group in groupby(units, lambda each: (each[1], each[0] in (2, 3))):
                own = [token for token, _ in group]
                assert len({times[token] for token in own}) == 1, "a word as a whole"
                wanted += own * (1 if special else times[own[0]])
            assert of_row(after, row) == wanted
            assert of_row(after, row, "positions") == list(range(len(wanted)))
            source = dict(zip(ids, of_row(before, row, "source"), strict=True))
            assert of_row(after, row, "source") == [source[each] for each in wanted]
            if unit == "word":
                last = [token for token, word in zip(ids, words, strict=True) if word == max(words)]
                assert all(times[token] == 1 for token in last), "the last word never"


HOW_MANY: list[tuple[int, dict[str, Any], int]] = [
    # Code: randrange(min(10, int(rate * L))), L with both special tokens; nothing where 0.
    (8, {"count": "code", "rate": 0.32}, 3),
    (30, {"count": "code", "rate": 0.32}, 10),
    (62, {"count": "code", "rate": 0.32}, 10),
    (62, {"count": "code", "rate": 0.32, "cap": None}, 20),
    (62, {"count": "code", "rate": 0.32, "cap": 4}, 4),
    (9, {"count": "code", "rate": 0.45}, 4),
    (1, {"count": "code", "rate": 0.32}, 1),
    (2, {"count": "code", "rate": 1.0}, 4),
    # Word mode of the code: randrange(min(10, W, max(2, int(rate * W)))).
    (8, {"count": "code", "unit": "word", "rate": 0.1}, 2),
    (20, {"count": "code", "unit": "word", "rate": 0.3}, 6),
    (1, {"count": "code", "unit": "word", "rate": 0.3}, 1),
    # Paper: 0 to max(2, int(rate * N)) of N content tokens, without a bound.
    (3, {"rate": 0.32}, 3),
    (8, {"rate": 0.45}, 4),
    (32, {"rate": 0.32}, 11),
    (50, {"rate": 0.32}, 17),
    (50, {"rate": 0.32, "cap": 10}, 10),
    (12, {"unit": "word", "rate": 0.3}, 4),
]
"""Content tokens of a row, options, and the number of repetitions that none reaches."""


def test_how_many() -> None:
    for content, options, below in HOW_MANY:
        before = token_rows(*[content] * 6000)
        found = Counter(added(before, repeated(before, **options)))
        most = content - 1 if options.get("unit") == "word" else content
        reach = [min(n, most) for n in range(below)]
        assert set(found) == set(reach), (content, options)
        for n in set(reach):
            share = reach.count(n) / len(reach)
            assert found[n] / 6000 == pytest.approx(share, abs=0.03), (content, options)


def test_each_content_token_is_as_likely_as_another() -> None:
    before = token_rows(*[6] * 6000)
    for when in ("step", "once"):
        after = repeated(before, when=when)
        times = Counter(after.source.tolist())
        shares = [times[place] / 6000 - 1 for place in range(6)]
        mean = sum(shares) / 6
        assert all(share == pytest.approx(mean, abs=0.02) for share in shares)


def test_once_depends_on_the_text_and_the_seed_alone() -> None:
    before = token_rows(*[20] * 50)
    one = repeated(before, make_context(step=3, epoch=0), when="once")
    other = repeated(before, make_context(step=9, epoch=2, seed=5), when="once")
    assert torch.equal(one.ids, other.ids)
    # In another order and another company: rows are repeated as before.
    order = torch.randperm(50, generator=torch.Generator().manual_seed(0))[:30]
    moved = repeated(before.take_rows(order), when="once")
    for place, row in enumerate(order.tolist()):
        assert of_row(moved, place) == of_row(one, row)


def test_once_differs_between_orders_seeds_and_views() -> None:
    before, ctx = token_rows(*[20] * 50), make_context()
    place = torch.arange(len(before.ids)).view(50, 22).clone()
    place[:, 1:21] = place[:, 1:21].flip(1)
    turned = replace(before, ids=before.ids[place.view(-1)])
    first = make_part("aug", "word-repetition", when="once")
    second = type(first)(first.options, make_setup("word-repetition", seed=1))
    anchor = View("anchor", "anchor", "online")
    cases = ((first, before, VIEW), (first, turned, VIEW), (first, before, anchor),
             (second, before, VIEW))  # fmt: skip
    one, *others = [added(rows, part(rows, rows, view, ctx)) for part, rows, view in cases]
    assert all(one != other for other in others)


def test_permuted_positions_stay_in_their_order() -> None:
    before = token_rows(12, 12, 12, words=3)
    mirrored = torch.cat([before.positions[:14].flip(0)] * 3)
    for unit in ("token", "word"):
        after = repeated(replace(before, positions=mirrored), unit=unit, rate=0.9, cap=None)
        assert sum(added(before, after)) > 0
        for row in range(3):
            places = of_row(after, row, "positions")
            assert sorted(places) == list(range(len(places)))
            ids = [i for _, i in sorted(zip(places, of_row(after, row), strict=True))]
            first = list(dict.fromkeys(ids))
            assert first == of_row(before, row)[::-1], "the mirrored order of those that were there"
            if unit == "token":
                assert ids == sorted(ids, key=first.index), "a copy beside its original"
