from __future__ import annotations

import pytest
import torch
from cse_adapter.adapter import AdapterBranch
from cse_testkit import (
    AugmenterSuite,
    BranchSuite,
    PluginSuite,
    RecipeSuite,
    Rig,
    compose,
    make_part,
    tiny_corpus,
)

from cse_core.errors import CseError


class TestPlugin(PluginSuite):
    distribution = "cse-adapter"


class TestRecipe(RecipeSuite):
    recipe = "adapter"


class TestAdapter(BranchSuite):
    part = ("branch", "adapter")
    variants = ({"after": (1,)},)


class TestFrequentWords(AugmenterSuite):
    part = ("aug", "frequent-words")
    options = {"threshold": 0.001, "most": 0.9}


def test_adapters_move_and_nothing_else_of_the_branch() -> None:
    rig = Rig(compose(recipe="adapter", sets=["train.lr=0.01"]), tiny_corpus())
    branch = rig.assembly.parts["branch.adapter"]
    assert isinstance(branch, AdapterBranch)
    before = {name: weight.clone() for name, weight in branch.encoder.named_parameters()}
    rig.step(3)
    for name, weight in branch.encoder.named_parameters():
        assert torch.equal(weight, before[name])
    assert all(bool(adapter.up.weight.any()) for adapter in branch.adapters.values())


def test_a_layer_that_is_not_there_is_refused() -> None:
    with pytest.raises(CseError, match="after = 9 is not a layer"):
        compose(recipe="adapter", sets=["branch.adapter.after=9"])


def test_words_are_left_out_by_their_share() -> None:
    part = make_part("aug", "frequent-words", threshold=0.02, most=0.6)
    part.prepare(tiny_corpus())
    assert part.probability("boat") == pytest.approx(1 - (0.02 / part.share["boat"]) ** 0.5)
    assert part.probability("the") == 0.6
    assert part.probability("unknown") == 0
