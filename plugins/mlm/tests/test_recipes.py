"""The kit over the recipes, and heads of the language model."""

from pathlib import Path
from typing import Any

import pytest
from cse_testkit import Rig, compose, recipe_suites, run_steps, shared_encoder

from cse_core.errors import CseError

globals().update(recipe_suites("cse-mlm", Path(__file__).parent / "settings"))


def test_without_hidden_tokens_it_is_refused_with_the_flag() -> None:
    with pytest.raises(CseError, match="needs the labels 'masked'.*--aug \\+mask"):
        run_steps({"loss": ["mlm"]}, [], "simcse", steps=1)


FROZEN = ["loss.mlm.tied=false", "loss.mlm.frozen=true", "loss.mlm.shifted=true"]


def test_a_frozen_head_is_that_of_the_folder() -> None:
    llama: Any = {"encoder": shared_encoder(family="llama")}
    rig = Rig(compose(recipe="mlm", sets=[*FROZEN, "aug.mask.token=_"], **llama))
    head = rig.session.parts["loss.mlm"].head  # type: ignore[attr-defined]
    assert head.pretrained and not any(each.requires_grad for each in head.parameters())
    rig.step(2)
    assert rig.losses[0] != rig.losses[1]
    with pytest.raises(CseError, match="mlm.frozen: the folder has no prediction head"):
        Rig(compose(recipe="mlm", sets=FROZEN)).step()
    with pytest.raises(CseError, match="frozen needs tied = false and head = model"):
        compose(recipe="mlm", sets=FROZEN[1:])
