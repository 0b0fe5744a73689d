"""The kit over the recipes; the losses beside those of other papers."""

from pathlib import Path
from typing import Any

from cse_testkit import recipe_suites, run_steps, tiny_corpus

globals().update(recipe_suites("cse-graded", Path(__file__).parent / "settings"))


def test_both_losses_beside_infonce() -> None:
    kinds: Any = {"loss": ["+angle", "+infonce"]}
    sets = ["loss.infonce.weight=0.5", "loss.angle.weight=0.1", "train.batch_size=4"]
    corpus = tiny_corpus(columns={"positive": "text", "score": "float"})
    rig = run_steps(kinds, sets, "cosent", steps=2, corpus=corpus)
    for total, parts in zip(rig.losses, rig.scalars, strict=True):
        summed = parts["cosent.loss"] + 0.1 * parts["angle.loss"] + 0.5 * parts["infonce.loss"]
        assert abs(total - summed) < 1e-4
