"""The kit over the recipe, and the loss beside a contrastive one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cse_testkit import recipe_suites, run_steps

from cse_core.errors import CseError

globals().update(recipe_suites("cse-mlm", Path(__file__).parent / "settings"))


def test_beside_a_contrastive_loss() -> None:
    kinds: Any = {"loss": ["+mlm"], "aug": ["+mask"]}
    sets = ["loss.mlm.weight=0.1", "train.batch_size=4"]
    rig = run_steps(kinds, sets, "simcse", steps=2)
    for total, parts in zip(rig.losses, rig.scalars, strict=True):
        assert abs(total - parts["infonce.loss"] - 0.1 * parts["mlm.loss"]) < 1e-4


def test_without_hidden_tokens_it_is_refused_with_the_flag() -> None:
    with pytest.raises(CseError, match="needs the labels 'masked'.*--aug \\+mask"):
        run_steps({"loss": ["mlm"]}, [], "simcse", steps=1)
