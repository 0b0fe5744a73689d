"""A step makes the encoder calls that the plan shows, and views of equal rows share their keys."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch

from cse_core.engine.passes import StepPasses
from cse_core.engine.row_keys import KeysOnDevice
from cse_core.engine.views import PreparedView
from cse_core.tokenization.tokenizer import TokenTable
from cse_core.types import SLOTS_PER_TEXT, View
from tests.core.engine.test_branches import EMA
from tests.core.engine.test_chunks import RECIPES
from tests.core.engine.test_views_and_levels import CUT, LOCAL, work_of
from tests.fixtures.tiny import Build

PLANNED = {
    **RECIPES,
    "branches": EMA + '[[negatives]]\nuse = "queue"\nbranch = "momentum"\nview = "anchor"\n',
    "pushed positives": EMA
    + '[[aug]]\nuse = "push"\ngradient = "fresh"\nsize = 0.5\nviews = ["positive"]\n'
    + '[[loss]]\nuse = "infonce"\n',
}


@pytest.mark.parametrize("recipe", PLANNED)
def test_a_step_makes_the_calls_of_the_plan(
    recipe: str, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = build(PLANNED[recipe])
    made: Counter[tuple[str, tuple[str, ...], bool]] = Counter()
    plain = StepPasses.call

    def call(self: StepPasses, branch: str, names: list[str], *given: Any) -> Any:
        made[branch, tuple(sorted(names)), torch.is_grad_enabled()] += 1
        return plain(self, branch, names, *given)

    monkeypatch.setattr(StepPasses, "call", call)
    bench.step(0)
    shown: Counter[tuple[str, tuple[str, ...], bool]] = Counter()
    own = {view.name: view.branch for view in bench.composition.views}
    for planned in bench.composition.passes:
        together = tuple(sorted(v for v in planned.views if own[v] == planned.branch))
        if together:
            shown[planned.branch, together, planned.gradient] += 1
        for view in planned.views:
            if own[view] != planned.branch:
                shown[planned.branch, (view,), False] += 1
    assert made == shown


def test_views_of_equal_rows_have_the_very_same_keys(build: Build) -> None:
    work = work_of(build(CUT + LOCAL))
    anchor, positive = work.keys["anchor"], work.keys["positive"]
    assert set(anchor) == {"segment", "sentence", "input"}
    assert all(anchor[level] is positive[level] for level in anchor)
    assert anchor["sentence"].owner.tolist() == list(range(8))
    assert anchor["segment"].slot.tolist() != [0] * len(anchor["segment"].slot)
    keys, owner, slot = KeysOnDevice(torch.device("cpu")), torch.arange(3), torch.zeros(3).long()
    assert keys.of(owner, slot) is keys.of(owner.clone(), slot.clone())
    assert keys.of(owner, slot) is not keys.of(owner, slot + 1)


def test_texts_of_one_batch_row_have_slots_of_their_own() -> None:
    table = TokenTable(torch.arange(6), torch.zeros(6).long(), torch.tensor([0, 2, 3, 6]))
    rows = table.rows(torch.arange(3))
    view = PreparedView.of(View("more", "aux", "online"), rows, torch.tensor([4, 1, 4]), 10)
    assert view.tokens.owner.tolist() == [14, 11, 14]
    assert view.tokens.slot.tolist() == [0, 0, SLOTS_PER_TEXT] and view.texts == 3
    part = view.between(14, 15)
    assert part.text.tolist() == [0, 2] and part.texts == 2
    assert [key.tolist() for key in part.text_keys()] == [[14, 14], [0, SLOTS_PER_TEXT]]
    assert view.between(11, 15) is view and not view.between(0, 5).tokens.rows
