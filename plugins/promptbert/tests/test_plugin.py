"""Every promise that the kit asks of the distribution, its parts and recipes."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from cse_promptbert import options, plugin
from cse_testkit import make_batch, make_context, make_part, part_suites, recipe_suites
from torch import Tensor

from cse_core.types import Batch, Negatives, Positives, StepContext


def slow(
    self: Any,
    batch: Batch,
    targets: Positives,
    negatives: Negatives,
    ctx: StepContext,
    options: Any,
) -> float:
    """Return CoT-BERT's loss in loops; hard negatives are those of the batch's negative views."""

    def close(one: Tensor, other: Tensor) -> float:
        return float(torch.cosine_similarity(one, other, dim=0) / options.temperature)

    hard: set[int] = set()
    for name, block in negatives.spans():
        if batch.roles.get(negatives.views.get(name, "")) == "negative":
            hard.update(range(block.start, block.stop))
    total = 0.0
    for a, anchor in enumerate(batch.anchors):
        terms = []
        for positive in targets.vectors[a]:
            below = math.exp(close(anchor, positive))
            for n, negative in enumerate(negatives.vectors):
                if not negatives.mask[a, n]:
                    weight = float(negatives.log_weights[a, n].exp())
                    below += weight * math.exp(close(anchor, negative))
                    if n in hard:
                        below += weight * math.exp(close(positive, negative))
            terms.append(math.log(below) - close(anchor, positive))
        total += sum(terms) / len(terms)
    return total / len(batch.anchors)


def test_the_templates_of_the_default_views_are_made() -> None:
    views = (view + plugin.SUFFIX for view in options.TemplateDenoisingOptions().views)
    assert (*views,) == plugin.VIEWS


def test_masks_and_weights_of_hard_negatives_hold_for_both_terms() -> None:
    """A row that is masked, and one that weighs half, in a view of negatives."""
    batch = make_batch(views={"positive": "positive", "negative": "negative"})
    ctx, loss = make_context(batch), make_part("loss", "extended-infonce", temperature=0.5)
    given = ctx.negatives(batch, loss.options)
    (block,) = [block for name, block in given.spans() if name == "negative"]
    mask, weights = given.mask.clone(), given.log_weights.clone()
    mask[:, block.start], weights[:, block.start + 1] = True, math.log(0.5)
    targets, values = batch.targets["positive"], []
    for negatives in (given, replace(given, mask=mask), replace(given, log_weights=weights)):
        values.append(float(loss(batch, targets, negatives, ctx).value))
        wanted = slow(None, batch, targets, negatives, ctx, loss.options)
        assert values[-1] == pytest.approx(wanted, rel=1e-9)
    assert len({*values}) == 3


globals().update(recipe_suites("cse-promptbert", Path(__file__).parent / "settings"))
globals().update(
    part_suites(
        "cse-promptbert",
        {
            "aug.template-only": {"variants": ({"gap": "padding"},)},
            "pool.template": {
                "variants": (
                    {
                        "anchor": "[MASK] is what the sentence [X] says , in short [MASK] .",
                        "positive": None,
                    },
                )
            },
            "transform.template-denoising": {"variants": ({"frozen": True},)},
            "loss.extended-infonce": {"options": {"temperature": 0.1}, "slow": slow},
        },
    )
)
