"""The kit over the recipe; the loss beside contrast."""

from pathlib import Path
from typing import Any

from cse_testkit import recipe_suites, run_steps

globals().update(recipe_suites("cse-denoising", Path(__file__).parent / "settings"))


def test_beside_contrast_and_a_queue_of_negatives() -> None:
    kinds: Any = {"loss": ["+reconstruction"], "negatives": ["queue"]}
    sets = ["loss.reconstruction.weight=0.5", "train.batch_size=4"]
    rig = run_steps(kinds, sets, "simcse", steps=2)
    for total, parts in zip(rig.losses, rig.scalars, strict=True):
        summed = parts["infonce.loss"] + 0.5 * parts["reconstruction.loss"]
        assert abs(total - summed) < 1e-4
