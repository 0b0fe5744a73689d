"""The suite of positive miners."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, cast

import numpy as np
import pytest
import torch

from cse_core.capabilities import flatten
from cse_core.records import MinerSpec
from cse_core.types import Batch, Positives, Round
from cse_testkit.part_suite import PartSuite
from cse_testkit.promises import after, promise
from cse_testkit.snapshots import difference, snapshot
from cse_testkit.watching import Watch


class MinerSuite(PartSuite):
    """What a positive miner promises, beside what every part does."""

    first = {
        "test_it_runs": ("test_groups_have_their_shapes", "test_rounds_are_well_formed_and_repeat")
    }

    @after("test_it_is_made")
    def test_groups_have_their_shapes(self) -> None:
        """In every step: ``[A, P, D]`` vectors and ``[A, P]`` weights of the batch's anchors."""
        for call in self.trial().watch.of("mine"):
            batch = cast(Batch, call.arguments[0])
            promise(isinstance(call.result, dict), "mine returns no dict of groups")
            for name, found in call.result.items():
                _check(batch, name, found)

    @after("test_groups_have_their_shapes")
    def test_groups_are_those_of_its_record(self) -> None:
        """The record provides ``positives:NAME`` for every group that is found."""
        trial = self.trial()
        choice = trial.choice
        provided = set(flatten(choice.spec.provided(choice.options)))
        for call in trial.watch.of("mine"):
            unknown = {f"positives:{name}" for name in call.result} - provided
            promise(not unknown, f"finds {sorted(unknown)}, which its record does not provide")

    @after("test_it_is_made")
    def test_rounds_are_well_formed_and_repeat(self) -> None:
        """A round has texts and their positives in columns of one length, the same twice."""
        if not cast(MinerSpec, self.found().spec).rounds:
            pytest.skip("it mines inside the step")
        trial = self.trial()
        other_rig = trial.fresh(watch=True)
        with suppress(Exception):  # what a faulty round makes of the step is not asked here
            other_rig.step(1)
        one, other = (_first(watch) for watch in (trial.watch, other_rig.watches[trial.path]))
        promise(one is not None, "asks for no round at all")
        if one is None or other is None:
            return
        lengths = {name: len(values) for name, values in one.pairs.items()}
        promise("text" in lengths, f"its pairs have no column text, only {sorted(lengths)}")
        promise(len(set(lengths.values())) == 1, f"its columns have lengths {lengths}")
        rows = len(trial.corpus)
        for name, values in one.pairs.items():
            if isinstance(values, np.ndarray):
                inside = bool(((values >= 0) & (values < rows)).all())
                promise(inside, f"column {name} has numbers that are not corpus rows")
            else:
                promise(all(text.strip() for text in values), f"column {name} has a blank text")
        where = difference(snapshot(_plain(one)), snapshot(_plain(other)))
        promise(where is None, f"mined twice with one seed, {where} is another")

    @after("test_it_runs", "test_pure_methods_change_nothing_and_repeat")
    def test_only_after_step_remembers(self) -> None:
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


def _first(watch: Watch) -> Round | None:
    """Return the first round that it asked for."""
    return next((call.result for call in watch.of("next_round")), None)


def _check(batch: Batch, name: str, found: Positives) -> None:
    anchors, dimension = batch.anchors.shape
    shape = tuple(found.vectors.shape)
    promise(
        len(shape) == 3 and shape[0] == anchors and shape[2] == dimension,
        f"group {name} has shape {shape}, not [{anchors}, P, {dimension}]",
    )
    promise(bool(found.vectors.isfinite().all()), f"group {name} has no finite vectors")
    if found.weights is None:
        return
    promise(
        tuple(found.weights.shape) == shape[:2],
        f"the weights of group {name} have shape {tuple(found.weights.shape)}, not {shape[:2]}",
    )
    promise(bool(torch.isfinite(found.weights).all()), f"group {name} has no finite weights")
    promise(bool((found.weights >= 0).all()), f"group {name} has weights below zero")


def _plain(wanted: Round) -> dict[str, Any]:
    pairs = {
        name: values if isinstance(values, np.ndarray) else list(values)
        for name, values in wanted.pairs.items()
    }
    return {"pairs": pairs, "losses": wanted.losses, "train": dict(wanted.train)}
