"""Which tokens are repeated, how many, and when they are drawn."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from cse_testkit import compose, least_seconds, make_context, make_part, make_setup, run_steps

from cse_core.errors import CseError
from cse_core.types import StepContext, TokenBatch, View, offsets_of, positions_of

VIEW = View("positive", "positive", "online")


def rows(*lengths: int, words: int = 1) -> TokenBatch:
    """Return rows of so many content tokens between two special ones, ``words`` tokens a word."""
    whole = torch.tensor(lengths) + 2
    offsets = offsets_of(whole)
    place = positions_of(offsets)
    last = torch.repeat_interleave(whole - 1, whole)
    special = (place == 0) | (place == last)
    ids = torch.arange(10, 10 + int(offsets[-1])).masked_fill(place == 0, 2)
    return TokenBatch(
        ids=ids.masked_fill(place == last, 3),
        positions=place,
        source=(place - 1).masked_fill(special, -1),
        word=((place - 1) // words).masked_fill(special, -1),
        special=special,
        offsets=offsets,
        owner=torch.arange(len(lengths)),
        slot=torch.zeros(len(lengths), dtype=torch.long),
    )


def repeated(x: TokenBatch, ctx: StepContext | None = None, **options: Any) -> TokenBatch:
    part = make_part("aug", "word-repetition", **options)
    return part(x, x, VIEW, ctx or make_context())


def of_row(x: TokenBatch, row: int, what: str = "ids") -> list[int]:
    found: list[int] = getattr(x, what)[int(x.offsets[row]) : int(x.offsets[row + 1])].tolist()
    return found


def added(before: TokenBatch, after: TokenBatch) -> list[int]:
    counts: list[int] = (after.lengths - before.lengths).tolist()
    return counts


@pytest.mark.parametrize("unit", ["token", "word"])
@pytest.mark.parametrize("when", ["step", "once"])
@pytest.mark.parametrize("count", ["paper", "code"])
def test_copies_stand_behind_what_they_copy(unit: str, when: str, count: str) -> None:
    before = rows(0, 1, 9, 30, 4, 17, words=3)
    after = repeated(before, unit=unit, when=when, count=count)
    assert torch.equal(after.owner, before.owner) and torch.equal(after.slot, before.slot)
    for row in range(before.rows):
        ids = of_row(before, row)
        times = Counter(of_row(after, row))
        assert set(times) == set(ids) and max(times.values()) <= 2
        assert times[2] == times[3] == 1, "special tokens once"
        # The row in loops: unit by unit, a repeated one twice.
        by_unit = of_row(before, row, "word") if unit == "word" else ids
        wanted: list[int] = []
        start = 0
        while start < len(ids):
            stop = start + 1
            special = ids[start] in (2, 3)
            while stop < len(ids) and by_unit[stop] == by_unit[start] and not special:
                stop += 1
            part = ids[start:stop]
            assert len({times[each] for each in part}) == 1, "a word as a whole"
            wanted += part * times[part[0]]
            start = stop
        assert of_row(after, row) == wanted
        assert of_row(after, row, "positions") == list(range(len(wanted)))
        source = dict(zip(ids, of_row(before, row, "source"), strict=True))
        assert of_row(after, row, "source") == [source[each] for each in wanted]
        if unit == "word":
            word = of_row(before, row, "word")
            assert all(times[i] == 1 for i, w in zip(ids, word, strict=True) if w == max(word))
    assert sum(added(before, after)) > 0


def lengths_drawn(length: int, **options: Any) -> Counter[int]:
    before = rows(*[length] * 6000)
    return Counter(added(before, repeated(before, **options)))


@pytest.mark.parametrize(
    ("content", "options", "numbers"),
    [
        # Code: randrange(min(10, int(rate * L))), L with both special tokens; nothing where 0.
        (8, {"count": "code", "rate": 0.32}, range(3)),
        (30, {"count": "code", "rate": 0.32}, range(10)),
        (62, {"count": "code", "rate": 0.32}, range(10)),
        (62, {"count": "code", "rate": 0.32, "cap": None}, range(20)),
        (62, {"count": "code", "rate": 0.32, "cap": 4}, range(4)),
        (9, {"count": "code", "rate": 0.45}, range(4)),
        (1, {"count": "code", "rate": 0.32}, range(1)),
        (2, {"count": "code", "rate": 1.0}, range(4)),
        # Word mode of the code: randrange(min(10, W, max(2, int(rate * W)))).
        (8, {"count": "code", "unit": "word", "rate": 0.1}, range(2)),
        (20, {"count": "code", "unit": "word", "rate": 0.3}, range(6)),
        (1, {"count": "code", "unit": "word", "rate": 0.3}, range(1)),
        # Paper: 0 to max(2, int(rate * N)) of N content tokens, without a bound.
        (3, {"rate": 0.32}, range(3)),
        (8, {"rate": 0.45}, range(4)),
        (30, {"rate": 0.32}, range(10)),
        (32, {"rate": 0.32}, range(11)),
        (50, {"rate": 0.32, "cap": None}, range(17)),
        (50, {"rate": 0.32}, range(17)),
        (50, {"rate": 0.32, "cap": 10}, range(10)),
        (12, {"unit": "word", "rate": 0.3}, range(4)),
    ],
)
def test_how_many(content: int, options: dict[str, Any], numbers: range) -> None:
    found = lengths_drawn(content, **options)
    most = content - 1 if options.get("unit") == "word" else content
    reach = [min(n, most) for n in numbers]
    assert set(found) == set(reach)
    for n in set(reach):
        share = reach.count(n) / len(reach)
        assert found[n] / 6000 == pytest.approx(share, abs=0.03)


def test_each_content_token_is_as_likely_as_another() -> None:
    before = rows(*[6] * 6000)
    for when in ("step", "once"):
        after = repeated(before, when=when)
        times = Counter(after.source.tolist())
        shares = [times[place] / 6000 - 1 for place in range(6)]
        mean = sum(shares) / 6
        assert all(share == pytest.approx(mean, abs=0.02) for share in shares)


def test_fresh_draws_differ_from_step_to_step() -> None:
    before = rows(*[20] * 50)
    one, same, other = (repeated(before, make_context(step=step)) for step in (3, 3, 4))
    assert torch.equal(one.ids, same.ids)
    assert added(before, one) != added(before, other)


def test_once_depends_on_the_text_and_the_seed_alone() -> None:
    before = rows(*[20] * 50)
    one = repeated(before, make_context(step=3, epoch=0), when="once")
    other = repeated(before, make_context(step=9, epoch=2, seed=5), when="once")
    assert torch.equal(one.ids, other.ids)
    # In another order and another company: rows are repeated as before.
    order = torch.randperm(50, generator=torch.Generator().manual_seed(0))[:30]
    moved = repeated(before.take_rows(order), when="once")
    for place, row in enumerate(order.tolist()):
        assert of_row(moved, place) == of_row(one, row)


def test_once_differs_between_orders_of_the_same_tokens() -> None:
    before = rows(*[20] * 50)
    place = torch.arange(len(before.ids)).view(50, 22).clone()
    place[:, 1:21] = place[:, 1:21].flip(1)
    turned = replace(before, ids=before.ids[place.view(-1)])
    counts = (added(each, repeated(each, when="once")) for each in (before, turned))
    assert next(counts) != next(counts)


def test_once_differs_between_seeds_and_views() -> None:
    before = rows(*[20] * 50)
    first = make_part("aug", "word-repetition", when="once")
    second = type(first)(first.options, make_setup("word-repetition", seed=1))
    anchor = View("anchor", "anchor", "online")
    ctx = make_context()
    lengths = [
        added(before, part(before, before, view, ctx))
        for part, view in ((first, VIEW), (first, anchor), (second, VIEW))
    ]
    assert lengths[0] != lengths[1] and lengths[0] != lengths[2]


@pytest.mark.parametrize("unit", ["token", "word"])
def test_permuted_positions_stay_in_their_order(unit: str) -> None:
    before = rows(12, 12, 12, words=3)
    mirrored = torch.cat([before.positions[:14].flip(0)] * 3)
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


def test_no_loop_over_rows() -> None:
    """Two thousand rows of 32 tokens in a few milliseconds, a small part of a step of 64."""
    before = rows(*[30] * 2000)
    for when in ("step", "once"):
        part = make_part("aug", "word-repetition", when=when)
        part(before, before, VIEW, make_context())
        assert least_seconds(partial(part, before, before, VIEW, make_context())) < 1.0


def test_a_run_trains_longer_positives() -> None:
    run = run_steps({"aug": ["word-repetition"]}, ["aug.word-repetition.rate=0.9"])
    assert not run.unchanged
    plain = run_steps()
    assert run.losses != plain.losses


@pytest.mark.parametrize(
    ("setting", "where"),
    [
        ("aug.word-repetition.rate=0", "aug.word-repetition.rate"),
        ("aug.word-repetition.rate=1.5", "aug.word-repetition.rate"),
        ("aug.word-repetition.cap=0", "aug.word-repetition.cap"),
        ("aug.word-repetition.cap=some", "aug.word-repetition.cap"),
        ("aug.word-repetition.unit=bpe", "aug.word-repetition.unit"),
        ("aug.word-repetition.views=[positiv]", "aug.word-repetition.views"),
    ],
)
def test_a_mistake_is_one_line(setting: str, where: str) -> None:
    with pytest.raises(CseError) as caught:
        compose(kinds={"aug": ["word-repetition"]}, sets=[setting])
    assert where in str(caught.value) and "\n" not in str(caught.value)
