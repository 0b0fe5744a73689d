"""The suite of augmenters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from cse_core.types import TokenBatch, View
from cse_testkit.part_suite import PartSuite
from cse_testkit.promises import after, promise
from cse_testkit.watching import Call


class AugmenterSuite(PartSuite):
    """What an augmenter promises, at whichever point it acts."""

    first = {
        "test_it_runs": (
            "test_it_keeps_rows_and_their_order",
            "test_pure_methods_change_nothing_and_repeat",
        ),
    }

    @after("test_it_runs")
    def test_it_is_called(self) -> None:
        """The run calls it, for its views only."""
        trial = self.trial()
        calls = trial.watch.of("call")
        promise(bool(calls), f"nothing called it in {trial.steps} steps")
        placed = next(
            each for each in trial.rig.assembly.augmenters if each.choice.path == trial.path
        )
        others = {_view(call).name for call in calls} - set(placed.views)
        promise(not others, f"called for views that it does not name: {sorted(others)}")

    @after("test_it_is_made", "test_pure_methods_change_nothing_and_repeat")
    def test_it_keeps_rows_and_their_order(self) -> None:
        """As many rows come out as went in, each in its place, with its owner and slot."""
        for call in self.trial().watch.of("call"):
            x, result = call.arguments[0], call.result
            if isinstance(x, TokenBatch):
                _check_tokens(x, result, len(self.trial().rig.assembly.online.tokenizer.hf))
            elif isinstance(x, Tensor):
                _check_states(x, result)
            else:
                promise(isinstance(result, list), f"returned {type(result).__name__}, not a list")
                promise(len(result) == len(x), f"{len(x)} texts in, {len(result)} out")
                promise(
                    all(isinstance(text, str) for text in result),
                    "returned something other than text",
                )
                _check_places([text.split() for text in x], [text.split() for text in result])

    @after("test_it_keeps_rows_and_their_order")
    def test_a_row_does_not_depend_on_the_others(self) -> None:
        """At an embedding point a row comes out the same, whatever is in the other rows.

        With gradient caching other rows are beside it than without.
        """
        met = self.trial().watch.met
        promise(not met, f"{', '.join(met[:2])} came out otherwise when the other rows changed")

    @after("test_it_keeps_rows_and_their_order")
    def test_gradients_pass_through_it(self) -> None:
        """What it returns at an embedding point still leads back to the encoder's weights."""
        for call in self.trial().watch.of("call"):
            x = call.arguments[0]
            if isinstance(x, Tensor) and x.requires_grad:
                promise(call.result.requires_grad, "cuts the gradient of what it changes")

    @after("test_it_runs")
    def test_an_augmenter_that_changed_nothing_says_so(self) -> None:
        """The run lists it as unchanged if, and only if, no call changed anything."""
        trial = self.trial()
        rig = trial.fresh(watch=True)
        rig.step(10)
        calls = rig.watches[trial.path].of("call")
        changed = any(_changed(call) for call in calls)
        shown = trial.path in rig.engine.builder.unchanged()
        promise(
            changed != shown,
            f"changed {'something' if changed else 'nothing'} in {len(calls)} calls, and the run "
            f"{'lists' if shown else 'does not list'} it as unchanged",
        )


def _view(call: Call) -> View:
    return next(each for each in call.arguments if isinstance(each, View))


def _changed(call: Call) -> bool:
    x, result = call.arguments[0], call.result
    if isinstance(x, Tensor):
        return not torch.equal(x, result)
    if isinstance(x, TokenBatch):
        same = torch.equal(x.offsets, result.offsets) and torch.equal(x.ids, result.ids)
        return not (same and torch.equal(x.positions, result.positions))
    return list(x) != list(result)


def _check_places(before: Sequence[Sequence[Any]], after: Sequence[Sequence[Any]]) -> None:
    """Check that most rows are more like what they were than like another row.

    Likeness is the share of common words (or tokens) among all of both.
    """
    moved = []
    for row, words in enumerate(after):
        like = [_likeness(words, other) for other in before]
        nearest = max(range(len(like)), key=like.__getitem__)
        if like[nearest] > like[row] + 0.2:
            moved.append(f"row {row} is what row {nearest} was")
    promise(2 * len(moved) <= len(after), f"moves rows: {', '.join(moved[:2])}")


def _likeness(one: Sequence[Any], other: Sequence[Any]) -> float:
    together = set(one) | set(other)
    return len(set(one) & set(other)) / len(together) if together else 1.0


def _check_states(x: Tensor, result: Tensor) -> None:
    promise(isinstance(result, Tensor), f"returned {type(result).__name__}, not a tensor")
    promise(result.shape == x.shape, f"{tuple(x.shape)} in, {tuple(result.shape)} out")
    promise(result.is_floating_point(), f"returned {result.dtype}")
    promise(bool(result.isfinite().all()), "returned values that are not finite")


def _check_tokens(x: TokenBatch, result: TokenBatch, vocabulary: int) -> None:
    promise(isinstance(result, TokenBatch), f"returned {type(result).__name__}, not a TokenBatch")
    promise(result.rows == x.rows, f"{x.rows} rows in, {result.rows} out")
    for name in ("owner", "slot"):
        promise(
            torch.equal(getattr(result, name), getattr(x, name)), f"changes the {name} of its rows"
        )
    promise(result.offsets.device.type == "cpu", "moved the offsets from the CPU")
    total = int(result.offsets[-1])
    for name in ("ids", "positions", "source", "word", "special"):
        length = len(getattr(result, name))
        promise(length == total, f"{name} has {length} entries for {total} tokens")
    promise(bool((result.lengths >= 0).all()), "a row has less than no tokens")
    inside = (result.ids >= 0) & (result.ids < vocabulary)
    promise(bool(inside.all()), "returned ids that are not in the vocabulary")
    swapped = []
    for row in range(x.rows):
        before, after = _row(x, row), _row(result, row)
        count = after.stop - after.start
        promise(
            result.positions[after].sort().values.tolist() == list(range(count)),
            f"the positions of row {row} are not 0 to {count - 1} in some order",
        )
        promise(
            result.ids[after][result.special[after]].tolist()
            == x.ids[before][x.special[before]].tolist(),
            f"changes the special or prompt tokens of row {row}",
        )
        foreign = set(result.source[after].tolist()) - set(x.source[before].tolist()) - {-1}
        promise(not foreign, f"row {row} has tokens of another row (source {sorted(foreign)})")
        words = _pairs(result, "source", "word", after) - _pairs(x, "source", "word", before)
        words = {pair for pair in words if pair[0] >= 0}
        promise(not words, f"row {row}: (source, word) {sorted(words)[:3]} are not those it had")
        if _pairs(result, "source", "ids", after) - _pairs(x, "source", "ids", before):
            same = Counter(result.ids[after].tolist()) == Counter(x.ids[before].tolist())
            swapped.append(same and count == before.stop - before.start)
    promise(
        not (swapped and all(swapped)),
        "puts the ids of a row in another order and leaves source and word where they were: "
        "move whole tokens by take_tokens, or permute positions",
    )
    rows = range(x.rows)
    _check_places(
        [x.ids[_row(x, row)].tolist() for row in rows],
        [result.ids[_row(result, row)].tolist() for row in rows],
    )


def _row(tokens: TokenBatch, row: int) -> slice:
    return slice(int(tokens.offsets[row]), int(tokens.offsets[row + 1]))


def _pairs(tokens: TokenBatch, one: str, other: str, place: slice) -> set[tuple[int, int]]:
    both = (getattr(tokens, name)[place].tolist() for name in (one, other))
    return set(zip(*both, strict=True))
