"""Draws: the same where nothing differs, others where anything does."""

from __future__ import annotations

from dataclasses import replace

import torch

from cse_core.runtime.seeds import StepPosition, draws


def test_each_place_of_a_run_has_draws_of_its_own() -> None:
    start = StepPosition(step=3, total_steps=10, epoch=0, round=1)

    def drawn(seed=0, position=start, rank=0, place=("positive",), name="a", shared=True):  # type: ignore[no-untyped-def]
        fresh = draws(seed, position, rank, *place)(name, shared=shared)
        return tuple(torch.rand(4, generator=fresh).tolist())

    plain = drawn()
    same = [drawn(), drawn(rank=1), drawn(position=replace(start, epoch=1, total_steps=20))]
    assert same == [plain] * 3
    others = [
        drawn(seed=1), drawn(position=replace(start, step=4)), drawn(place=("anchor",)),
        drawn(position=replace(start, round=2)), drawn(name="b"), drawn(place=("positive", 1)),
        drawn(shared=False), drawn(shared=False, rank=1),
    ]  # fmt: skip
    assert len({plain, *others}) == 1 + len(others)
