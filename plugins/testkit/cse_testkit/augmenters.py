"""The suite of augmenters."""

from __future__ import annotations

import torch
from torch import Tensor

from cse_core.types import TokenBatch, View
from cse_testkit.part_suite import PartSuite
from cse_testkit.promises import promise
from cse_testkit.watching import Call


class AugmenterSuite(PartSuite):
    """What an augmenter promises, at whichever point it acts."""

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

    def test_gradients_pass_through_it(self) -> None:
        """What it returns at an embedding point still leads back to the encoder's weights."""
        for call in self.trial().watch.of("call"):
            x = call.arguments[0]
            if isinstance(x, Tensor) and x.requires_grad:
                promise(call.result.requires_grad, "cuts the gradient of what it changes")

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
    for row in range(x.rows):
        before = slice(int(x.offsets[row]), int(x.offsets[row + 1]))
        after = slice(int(result.offsets[row]), int(result.offsets[row + 1]))
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
