"""The suite of negative stores."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import torch
from torch import Tensor

from cse_core.engine import negatives as core
from cse_core.options import LossOptions, StoreOptions
from cse_core.parts import NegativeStore
from cse_core.types import Batch, Negatives
from cse_testkit.part_suite import PartSuite
from cse_testkit.promises import promise
from cse_testkit.snapshots import difference, snapshot


class StoreSuite(PartSuite):
    """What a negative store promises, beside what every part does."""

    def test_candidates_have_their_shapes(self) -> None:
        """In every step: ``[N, D]`` vectors, ``[A, N]`` mask and weights, ``[N]`` rows and ages."""
        for call in self.trial().watch.of("candidates"):
            if call.result is not None:
                _check(cast(Batch, call.arguments[0]), call.result)

    def test_old_candidates_are_detached(self) -> None:
        """What was stored in an earlier step carries no gradient."""
        for call in self.trial().watch.of("candidates"):
            found = call.result
            if found is not None and len(found) and bool((found.age > 0).all()):
                promise(not found.vectors.requires_grad, "candidates of earlier steps hold a graph")
                promise(not found.log_weights.requires_grad, "their weights hold a graph")

    def test_weigh_only_weighs(self) -> None:
        """``weigh`` leaves vectors, rows, ages and blocks, and returns usable masks and weights."""
        for call in self.trial().watch.of("weigh"):
            before, batch = cast(tuple[Negatives, Batch], call.arguments[:2])
            _check_weighed(batch, before, call.result)

    def test_weigh_takes_any_candidates(self) -> None:
        """None at all, all masked, of weight zero, one anchor: ``weigh`` takes them."""
        part = cast(NegativeStore, self.trial().part)
        for sentences in (1, 4):
            batch = self.batch(sentences)
            ctx = self.trial().context(batch)
            several = core.of_loss(batch, LossOptions(), ())
            for given in (
                core.nothing(batch),
                several,
                replace(several, mask=torch.ones_like(several.mask)),
                replace(several, log_weights=torch.full_like(several.log_weights, -torch.inf)),
            ):
                before = snapshot(part)
                _check_weighed(batch, given, part.weigh(given, batch, ctx))
                where = difference(before, snapshot(part))
                promise(where is None, f"weigh changes what the store holds: {where}")

    def test_only_after_step_stores(self) -> None:
        """Steps that are computed and not committed leave it as it was."""
        rig = self.trial().fresh()
        rig.step(2)
        part = rig.assembly.parts[self.trial().path]
        before = snapshot(part)
        part.after_step = lambda batch, ctx: None  # type: ignore[method-assign]
        rig.step(1)
        del part.after_step
        where = difference(before, snapshot(part))
        promise(where is None, f"a step without after_step changes {where}")

    def batch(self, sentences: int = 4) -> Batch:
        """Return a made-up batch at the store's level."""
        level = cast(StoreOptions, self.trial().choice.options).level
        return self.trial().batch(level, sentences=sentences)


def _check(batch: Batch, found: Negatives) -> None:
    anchors, count = len(batch.anchors), len(found.vectors)
    promise(found.vectors.ndim == 2, f"vectors have shape {tuple(found.vectors.shape)}, not [N, D]")
    _shape("mask", found.mask, (anchors, count))
    _shape("log_weights", found.log_weights, (anchors, count))
    _shape("row", found.row, (count,))
    _shape("age", found.age, (count,))
    promise(found.mask.dtype == torch.bool, f"the mask is {found.mask.dtype}, not bool")
    promise(not found.row.is_floating_point(), f"row is {found.row.dtype}, not integers")
    promise(bool(found.vectors.isfinite().all()), "vectors are not finite")
    _usable(found.log_weights)
    rows = len(batch.corpus.text_ids)
    inside = (found.row >= -1) & (found.row < rows)
    promise(bool(inside.all()), f"row has numbers that are not corpus rows (there are {rows})")
    promise(bool((found.age >= 0).all()), "an age is negative")


def _check_weighed(batch: Batch, before: Negatives, after: Negatives) -> None:
    for name in ("vectors", "row", "age", "blocks"):
        where = difference(snapshot(getattr(before, name)), snapshot(getattr(after, name)))
        promise(where is None, f"weigh changes the {name} of the negatives")
    _shape("mask", after.mask, tuple(before.mask.shape))
    _shape("log_weights", after.log_weights, tuple(before.mask.shape))
    promise(after.mask.dtype == torch.bool, f"the mask is {after.mask.dtype}, not bool")
    _usable(after.log_weights)


def _shape(name: str, tensor: Tensor, wanted: tuple[int, ...]) -> None:
    promise(tuple(tensor.shape) == wanted, f"{name} has shape {tuple(tensor.shape)}, not {wanted}")


def _usable(log_weights: Tensor) -> None:
    promise(not bool(log_weights.isnan().any()), "a log-weight is NaN")
    promise(not bool((log_weights == torch.inf).any()), "a log-weight is plus infinity")
