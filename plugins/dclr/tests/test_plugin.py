"""The kit over DCLR's distribution, parts and recipe, and what the plan says of its parts."""

import math
from pathlib import Path
from typing import Any

import torch
from cse_dclr.options import NoiseOptions
from cse_testkit import LossSuite, StoreSuite, compose, part_suites, recipe_suites
from torch import Tensor

from cse_core.types import Batch, Negatives, Positives, StepContext

BOTH_VIEWS = "negatives.instance-weights.view=positive"

globals().update(recipe_suites("cse-dclr", Path(__file__).parent / "settings"))
globals().update(
    part_suites(
        "cse-dclr",
        {
            "negatives.noise": {
                "options": {"times": 1.5},
                "variants": ({"objective": "batch", "deviation": 0.5, "step_size": 0.1},),
            },
            "negatives.instance-weights": {"options": {"phi": 0.2, "center": True}},
            "loss.dclr": {"options": {"temperature": 0.3}},
        },
    )
)


class TestInstanceWeightsOfTwoDropouts(StoreSuite):
    part = ("negatives", "instance-weights")
    options = {"phi": 0.5}
    sets = ("branch.frozen.mode=train",)


class TestPublished(LossSuite):
    part = ("loss", "dclr")
    options = {"variant": "published", "temperature": 0.3}

    def slow(
        self, batch: Batch, targets: Positives, negatives: Negatives, ctx: StepContext, options: Any
    ) -> float:
        def logit(anchor: Tensor, other: Tensor) -> float:
            return float(torch.cosine_similarity(anchor, other, dim=0)) / options.temperature

        total = 0.0
        for a, anchor in enumerate(batch.anchors):
            logits = [logit(anchor, targets.vectors[a, 0])]
            for n, negative in enumerate(negatives.vectors):
                if not bool(negatives.mask[a, n]):
                    weight = math.exp(float(negatives.log_weights[a, n]))
                    logits.append(weight * logit(anchor, negative))
            mass = sum(math.exp(each) for each in logits)
            shares = [math.exp(each) / mass for each in logits]
            entropies = [-math.log(shares[0]), *(-math.log(1 - p) for p in shares[1:])]
            total += sum(entropies) / len(entropies)
        return total / len(batch.anchors)

    def promise_a_masked_candidate_does_not_count(self) -> None:
        """Masked for every anchor it changes nothing; of weight zero it stays in, as a logit 0."""
        batch = self.batch()
        targets, few = self.targets(batch), self.negatives(batch, 5, "some", "random")
        value = self.value(batch, targets, few)
        rows = len(batch.anchors)
        more = self.negatives(batch, 3, "all", "zero")
        assert torch.isclose(value, self.value(batch, targets, Negatives.join([few, more])))
        weightless = Negatives.of(
            more.vectors, rows, name="w", log_weights=torch.full((rows, 3), -torch.inf)
        )
        orthogonal = Negatives.of(torch.zeros_like(more.vectors), rows, name="o")
        one, other = (
            self.value(batch, targets, Negatives.join([few, each]))
            for each in (weightless, orthogonal)
        )
        assert torch.isclose(one, other) and not torch.isclose(one, value)


def test_the_defaults_are_those_of_the_published_code() -> None:
    noise = NoiseOptions()
    assert (noise.steps, noise.step_size, noise.deviation) == (4, 1e-3, 1.0)  # models.py, pgd


def test_the_second_encoder_has_a_pass_for_the_views_that_it_judges() -> None:
    one, two = (compose(recipe="dclr", sets=sets) for sets in ([], [BOTH_VIEWS]))
    assert [(each.branch, each.views, each.gradient) for each in one.passes] == [
        ("online", ("anchor", "positive"), True),
        ("frozen", ("anchor",), False),
    ]
    assert two.passes[1].views == ("anchor", "positive")
    (note,) = (note for note in two.notes if "one pass less" in note)
    assert "view = anchor" in note
    other = compose(recipe="dclr", sets=[BOTH_VIEWS, "branch.frozen.mode=train"])
    assert not any("one pass less" in note for note in other.notes)


def test_the_plan_warns_of_a_second_encoder_that_was_never_trained() -> None:
    sets = ["negatives.instance-weights.center=false"]
    (line,) = compose(recipe="dclr", sets=sets).warnings
    assert "center = true" in line and "removed" in line
    assert not compose(recipe="dclr").warnings
