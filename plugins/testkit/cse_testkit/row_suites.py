"""The suites of what chooses rows: samplers, and miners of positives and of rounds."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import cast

import torch
from torch import Tensor

from cse_core.capabilities import Need
from cse_core.parts import PositiveMiner, Sampler
from cse_core.records import MinerSpec
from cse_testkit.batches import seeded
from cse_testkit.part_suite import PartSuite
from cse_testkit.promises import NotMeant
from cse_testkit.watching import random_state, same, snapshot

_ROUNDS = 100
"""Rounds after which a miner has enough."""


class SamplerSuite(PartSuite):
    """What a sampler promises, beside what every part does."""

    base = (Sampler,)

    def promise_an_epoch_repeats(self) -> None:
        """The draws of an epoch give one order, whatever was ordered or trained before.

        The core sees that it has each row once. No global generator is drawn from, or seeded.
        """
        rig, path = self.trial().fresh(), self.trial().path
        session = rig.session.prepare()
        part, rows = cast(Sampler, session.parts[path]), session.rows
        other = cast(Sampler, self.trial().fresh().session.prepare().parts[path])

        def order(of: Sampler, epoch: int = 0) -> Tensor | None:
            return of.order(rows, 4, partial(seeded, "sampler suite", epoch))

        state = random_state()
        first, second = order(part), order(part, 1)
        assert state == random_state(), "order draws from a global generator: use draws(name)"
        _same_order(first, order(part), "ordered twice with one seed")
        rig.step(2)
        _same_order(first, order(part), "ordered again after two steps")
        _same_order(second, order(other, 1), "ordered by a part that ordered no epoch before")


def _same_order(one: Tensor | None, other: Tensor | None, when: str) -> None:
    same = one is other or (one is not None and other is not None and torch.equal(one, other))
    assert same, f"{when}, another order: it may depend on the rows, begin_round and draws alone"


class MinerSuite(PartSuite):
    """What a positive miner promises, beside what every part does."""

    base = (PositiveMiner,)

    def promise_its_groups_can_be_used(self) -> None:
        """Each group is in ``provides``; vectors are finite, weights too and not below zero."""
        planned = self.trial().planned
        for call in self.trial().calls("mine"):
            for name, group in call.result.items():
                provided = Need("positives", name) in planned.provides
                assert provided, f"finds positives:{name}, which its record does not provide"
                weights = torch.ones(1) if group.weights is None else group.weights
                fine = bool(group.vectors.isfinite().all()) and bool(weights.isfinite().all())
                assert fine, f"group {name} has vectors or weights that are not finite"
                assert bool((weights >= 0).all()), f"group {name} has weights below zero"

    def promise_its_rounds_repeat_and_end(self) -> None:
        """It asks for a round, the same twice, and some day for none without a better score."""
        if not cast(MinerSpec, self.found().spec).rounds:
            raise NotMeant("it mines inside the step")
        trial = self.trial()
        again = trial.fresh(watch=trial.path)
        again.session.prepare()
        one, other = (
            next((call.result for call in rig.watch.of(trial.path, "next_round")), None)
            for rig in (trial.rig, again)
        )
        assert one is not None, "asks for no round at all"
        same("mined twice with one seed, another", snapshot(one), snapshot(other))
        part, (ctx,) = (
            again.session.parts[trial.path],
            again.watch.of(trial.path, "next_round")[0].arguments,
        )
        asked = (
            part.next_round(replace(ctx, round=number, scores=(0.0,) * (number - 1)))
            for number in range(2, _ROUNDS)
        )
        assert any(made is None for made in asked), (
            f"asks for a round {_ROUNDS} times, and never returns None: its runs would not end"
        )
