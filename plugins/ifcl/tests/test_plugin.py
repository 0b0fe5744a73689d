"""The kit over IFCL's distribution and parts."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from cse_testkit import LossSuite, MetricSuite, part_suites
from torch import Tensor

from cse_core.types import Batch, Negatives, Positives, StepContext

LEXICON = str(Path(__file__).parent / "lexicon.tsv")


def slow_twins(
    self: Any,
    batch: Batch,
    targets: Positives,
    negatives: Negatives,
    ctx: StepContext,
    options: Any,
) -> float:
    """Return Eqs. 4 to 9 in loops, with masks and weights as the core defines them."""
    views = {name: view["sentence"].vectors for name, view in batch.views.items()}
    inputs = {name: view["input"].vectors for name, view in batch.views.items()}
    weights = [each.start for each in (options.identical, options.fraternal, options.margin)]
    total, count = 0.0, len(batch.anchors)

    def exponential(one: Tensor, other: Tensor, temperature: float = 1.0) -> float:
        return math.exp(float(torch.cosine_similarity(one, other, dim=0)) / temperature)

    for i, anchor in enumerate(batch.anchors):
        identical, fraternal = views["identical"][i], views["positive"][i]
        mass = own = exponential(anchor, identical, options.temperature)
        for n, negative in enumerate(negatives.vectors):
            if not bool(negatives.mask[i, n]):
                weight = math.exp(float(negatives.log_weights[i, n]))
                mass += weight * exponential(anchor, negative, options.temperature)
        total -= weights[0] * math.log(own / mass)
        own = exponential(anchor, fraternal, options.temperature)
        mass = sum(exponential(anchor, other, options.temperature) for other in views["positive"])
        total -= weights[1] * math.log(own / mass)
        innate = exponential(inputs["anchor"][i], inputs["identical"][i])
        innate -= exponential(inputs["anchor"][i], inputs["positive"][i])
        learned = exponential(anchor, identical) - exponential(anchor, fraternal)
        total += weights[2] * abs(learned - innate)
    return total / count


globals().update(
    part_suites(
        "cse-ifcl",
        {
            "aug.fusion": {
                "variants": (
                    {
                        "at": "word_embeddings",
                        "epsilon": 0.5,
                        "unmatched": "zero",
                        "special": "pad",
                    },
                )
            },
            "aug.random-deletion": {"options": {"rate": 0.3}},
            "aug.synonym": {"options": {"lexicon": LEXICON, "rate": 0.5}},
            "aug.random-insertion": {
                "options": {"lexicon": LEXICON},
                "variants": ({"unit": "character"},),
            },
            "negatives.hippocampus": {
                "variants": ({"batches": 2, "forgetting": 0.0, "view": "positive"},)
            },
            "loss.twins": {
                "options": {"temperature": 0.3, "identical": 0.7, "fraternal": 1.3, "margin": 0.4},
                "slow": slow_twins,
            },
        },
    )
)


class TestMutualInformationOfGoodPairs(MetricSuite):
    part = ("metric", "mutual-information")
    options = {"gold": 4.0, "temperature": 0.5}


class TestTwinsSummedBothWays(LossSuite):
    part = ("loss", "twins")
    options = {"reduction": "sum", "directions": "both", "in_batch": "both"}


class TestTwinsByDotProduct(LossSuite):
    part = ("loss", "twins")
    options = {"similarity": "dot", "margin": 0.0, "temperature": 2.0}


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)
