"""The suites of negative stores and positive miners, which see a batch and may keep its vectors."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from cse_core.capabilities import flatten
from cse_core.engine import negatives as core
from cse_core.options import LossOptions, StoreOptions
from cse_core.parts import NegativeStore
from cse_core.records import MinerSpec
from cse_core.types import Batch, Negatives, Round
from cse_testkit.part_suite import PartSuite
from cse_testkit.promises import NotMeant
from cse_testkit.runs import Rig
from cse_testkit.watching import difference, snapshot


class KeepingSuite(PartSuite):
    """What a part promises that may keep vectors of a batch."""

    last = (*PartSuite.last, "only_after_step_keeps_anything")

    def promise_only_after_step_keeps_anything(self) -> None:
        """Steps that are computed and not committed leave it as it was."""
        rig = self.trial().fresh()
        rig.step(2)
        part = rig.assembly.parts[self.trial().path]
        before = snapshot(part)
        part.after_step = lambda batch, ctx: None  # type: ignore[method-assign]
        rig.step(1)
        del part.after_step
        where = difference(before, snapshot(part))
        assert where is None, f"a step without after_step changes {where}"


class StoreSuite(KeepingSuite):
    """What a negative store promises, beside what every part does."""

    def promise_its_candidates_can_be_used(self) -> None:
        """Weights are numbers, rows are corpus rows, and what is of earlier steps has no graph."""
        for call in self.trial().calls("candidates"):
            if call.result is None:
                continue
            batch, found = cast(Batch, call.arguments[0]), cast(Negatives, call.result)
            assert bool(found.vectors.isfinite().all()), "vectors are not finite"
            _check_weights(found.log_weights)
            rows = len(batch.corpus.text_ids)
            inside = (found.row >= -1) & (found.row < rows)
            assert bool(inside.all()), f"row has numbers that are no corpus rows (of {rows})"
            assert not found.row.is_floating_point(), f"row is {found.row.dtype}, not integers"
            assert bool((found.age >= 0).all()), "an age is negative"
            if len(found) and bool((found.age > 0).all()):
                held = found.vectors.requires_grad or found.log_weights.requires_grad
                assert not held, "candidates of earlier steps, or their weights, hold a graph"

    def promise_weigh_only_weighs(self) -> None:
        """``weigh`` leaves vectors, rows, ages and blocks, and unmasks nothing that was masked.

        The core masks an anchor's own positives, and other rows with its text. A candidate that
        was masked for an anchor is masked, or of weight zero, after ``weigh``.
        """
        for call in self.trial().calls("weigh"):
            before = cast(Negatives, call.arguments[0])
            _check_weighed(before, call.result)
            shown = before.mask & ~call.result.mask & (call.result.log_weights > -torch.inf)
            count = int(shown.sum())
            assert not count, f"weigh makes {count} masked pairs negatives again"

    def promise_weigh_takes_any_candidates(self) -> None:
        """None at all, all masked, of weight zero, one anchor: ``weigh`` takes them."""
        part = cast(NegativeStore, self.trial().part)
        for sentences in (1, 4):
            batch = self.batch(sentences)
            several = core.negatives_for_loss(batch, LossOptions(), ())
            for given in (
                core.no_negatives(batch),
                several,
                replace(several, mask=torch.ones_like(several.mask)),
                replace(several, log_weights=torch.full_like(several.log_weights, -torch.inf)),
            ):
                _check_weighed(given, part.weigh(given, batch, self.context(batch)))

    def promise_its_rows_are_those_of_its_vectors(self) -> None:
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
        part.after_step(early, self.context(early))
        found = part.candidates(late, self.context(late))
        if found is None or found.vectors.shape[1] != vectors.shape[1]:
            return
        close = functional.normalize(found.vectors) @ functional.normalize(vectors).T
        for candidate, row in enumerate(found.row.tolist()):
            same = {int(rows[place]) for place in (close[candidate] > 0.9999).nonzero()[:, 0]}
            assert not same or row in {-1, *same}, (
                f"row of candidate {candidate} is {row}; its vector is that of corpus row "
                f"{sorted(same)[0]}: batch.row, not batch.owner"
            )

    def promise_anchors_see_candidates_of_others(self) -> None:
        """Some candidate of another row, text and document is not masked: True hides one."""
        unrelated = seen = 0
        for call in self.trial().calls("candidates"):
            batch, found = cast(Batch, call.arguments[0]), call.result
            if found is None:
                continue
            keys = batch.corpus
            own = (
                (batch.row.unsqueeze(1) == found.row.unsqueeze(0))
                | keys.same(keys.documents, batch.row, found.row)
                | keys.same(keys.text_ids, batch.row, found.row)
            )
            unrelated += int((~own).sum())
            seen += int((~own & ~found.mask).sum())
        assert seen or not unrelated, (
            f"all {unrelated} pairs of an anchor and a candidate of another row, text and document "
            "are masked; True in the mask means that it is not a negative"
        )

    def batch(self, sentences: int = 4) -> Batch:
        """Return a made-up batch at the store's level."""
        level = cast(StoreOptions, self.trial().planned.options).level
        return self.batch_at(level, sentences=sentences)


def _check_weighed(before: Negatives, after: Negatives) -> None:
    for name in ("vectors", "row", "age", "blocks"):
        where = difference(snapshot(getattr(before, name)), snapshot(getattr(after, name)))
        assert where is None, f"weigh changes the {name} of the negatives"
    for name in ("mask", "log_weights"):
        shape = tuple(getattr(after, name).shape)
        assert shape == tuple(before.mask.shape), f"weigh returns {name} of shape {shape}"
    assert after.mask.dtype == torch.bool, f"the mask is {after.mask.dtype}, not bool"
    _check_weights(after.log_weights)


def _check_weights(log_weights: Tensor) -> None:
    wrong = log_weights.isnan() | (log_weights == torch.inf)
    assert not bool(wrong.any()), "a log-weight is NaN or plus infinity"


class MinerSuite(KeepingSuite):
    """What a positive miner promises, beside what every part does."""

    def promise_its_groups_can_be_used(self) -> None:
        """Each group is in ``provides``; vectors are finite, weights too and not below zero."""
        planned = self.trial().planned
        provided = set(flatten(planned.spec.provided(planned.options)))
        for call in self.trial().calls("mine"):
            for name, found in call.result.items():
                there = f"positives:{name}" in provided
                assert there, f"finds positives:{name}, which its record does not provide"
                weights = torch.ones(1) if found.weights is None else found.weights
                fine = bool(found.vectors.isfinite().all()) and bool(weights.isfinite().all())
                assert fine, f"group {name} has vectors or weights that are not finite"
                assert bool((weights >= 0).all()), f"group {name} has weights below zero"

    def promise_rounds_are_well_formed_and_repeat(self) -> None:
        """A round has texts and their positives in columns of one length, the same twice."""
        if not cast(MinerSpec, self.found().spec).rounds:
            raise NotMeant("it mines inside the step")
        trial = self.trial()
        again = trial.fresh(watch=True)
        again.begin()
        one, other = (_first_round(rig, trial.path) for rig in (trial.rig, again))
        assert one is not None, "asks for no round at all"
        lengths = {name: len(values) for name, values in one.pairs.items()}
        assert "text" in lengths, f"its pairs have no column text, only {sorted(lengths)}"
        assert len(set(lengths.values())) == 1, f"its columns have lengths {lengths}"
        for name, values in one.pairs.items():
            if isinstance(values, np.ndarray):
                inside = bool(((values >= 0) & (values < len(trial.corpus))).all())
                assert inside, f"column {name} has numbers that are not corpus rows"
            else:
                assert all(text.strip() for text in values), f"column {name} has a blank text"
        where = difference(snapshot(_plain(one)), snapshot(other and _plain(other)))
        assert where is None, f"mined twice with one seed, {where} is another"


def _first_round(rig: Rig, path: str) -> Round | None:
    return next((call.result for call in rig.watch.of(path, "next_round")), None)


def _plain(wanted: Round) -> list[object]:
    pairs = {
        name: values if isinstance(values, np.ndarray) else list(values)
        for name, values in wanted.pairs.items()
    }
    return [pairs, wanted.losses, dict(wanted.train)]
