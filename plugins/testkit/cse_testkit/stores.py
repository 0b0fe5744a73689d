"""The suite of negative stores."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import torch
from torch import Tensor
from torch.nn import functional

from cse_core.engine import negatives as core
from cse_core.options import LossOptions, StoreOptions
from cse_core.parts import NegativeStore
from cse_core.types import Batch, Negatives
from cse_testkit.part_suite import PartSuite
from cse_testkit.promises import after, promise
from cse_testkit.snapshots import difference, snapshot


class StoreSuite(PartSuite):
    """What a negative store promises, beside what every part does."""

    first = {"test_it_runs": ("test_candidates_have_their_shapes", "test_weigh_only_weighs")}

    @after("test_it_is_made")
    def test_candidates_have_their_shapes(self) -> None:
        """In every step: ``[N, D]`` vectors, ``[A, N]`` mask and weights, ``[N]`` rows and ages."""
        for call in self.trial().watch.of("candidates"):
            if call.result is not None:
                _check(cast(Batch, call.arguments[0]), call.result)

    @after("test_candidates_have_their_shapes")
    def test_old_candidates_are_detached(self) -> None:
        """What was stored in an earlier step carries no gradient."""
        for call in self.trial().watch.of("candidates"):
            found = call.result
            if found is not None and len(found) and bool((found.age > 0).all()):
                promise(not found.vectors.requires_grad, "candidates of earlier steps hold a graph")
                promise(not found.log_weights.requires_grad, "their weights hold a graph")

    @after("test_it_is_made")
    def test_weigh_only_weighs(self) -> None:
        """``weigh`` leaves vectors, rows, ages and blocks, and returns usable masks and weights."""
        for call in self.trial().watch.of("weigh"):
            before, batch = cast(tuple[Negatives, Batch], call.arguments[:2])
            _check_weighed(batch, before, call.result)

    @after("test_weigh_only_weighs")
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

    @after("test_it_runs", "test_pure_methods_change_nothing_and_repeat")
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

    @after("test_it_runs")
    def test_its_rows_are_those_of_its_vectors(self) -> None:
        """``row`` of a candidate that is a vector of a batch is that vector's corpus row."""
        part = cast(NegativeStore, self.trial().fresh().assembly.parts[self.trial().path])
        early, late = self.batch(), self.batch()
        late = replace(late, rows=(late.rows + 3) % len(self.trial().corpus))
        known = [
            (rows.vectors, batch.rows[rows.owner])
            for batch in (early, late)
            for name, levels in batch.views.items()
            for rows in levels.values()
            if batch.roles[name] in ("anchor", "positive", "identical")
        ]
        vectors, rows = (torch.cat(each) for each in zip(*known, strict=True))
        part.after_step(early, self.trial().context(early))
        found = part.candidates(late, self.trial().context(late))
        if found is None or found.vectors.shape[1] != vectors.shape[1]:
            return
        close = functional.normalize(found.vectors) @ functional.normalize(vectors).T
        for candidate, row in enumerate(found.row.tolist()):
            same = {int(rows[place]) for place in (close[candidate] > 0.9999).nonzero()[:, 0]}
            promise(
                not same or row in {-1, *same},
                f"row of candidate {candidate} is {row}; its vector is that of corpus row "
                f"{sorted(same)[0] if same else row}: batch.row, not batch.owner",
            )

    @after("test_it_runs")
    def test_anchors_see_candidates_of_others(self) -> None:
        """Some candidate of another row, text and document is not masked: True hides one."""
        unrelated = seen = 0
        for call in self.trial().watch.of("candidates"):
            batch, found = cast(Batch, call.arguments[0]), call.result
            if found is None:
                continue
            keys = batch.corpus
            own = (batch.row.unsqueeze(1) == found.row.unsqueeze(0)) | (
                keys.same(keys.documents, batch.row, found.row)
                | keys.same(keys.text_ids, batch.row, found.row)
            )
            unrelated += int((~own).sum())
            seen += int((~own & ~found.mask).sum())
        promise(
            not unrelated or bool(seen),
            f"all {unrelated} pairs of an anchor and a candidate of another row, text and document "
            "are masked; True in the mask means that it is not a negative",
        )

    @after("test_weigh_takes_any_candidates")
    def test_weigh_keeps_what_is_masked(self) -> None:
        """A candidate that was masked for an anchor is masked, or of weight zero, after ``weigh``.

        The core masks an anchor's own positives, and other rows with its text.
        """
        for call in self.trial().watch.of("weigh"):
            before, after_ = call.arguments[0], call.result
            shown = before.mask & ~after_.mask & (after_.log_weights > -torch.inf)
            promise(
                not bool(shown.any()),
                f"weigh makes {int(shown.sum())} masked pairs negatives again",
            )

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
