"""The kit over the distribution, its parts and recipes, beside loops over pairs."""

import math
from pathlib import Path
from typing import Any

import torch
from cse_tension.loss import first_that_follow
from cse_testkit import LossSuite, part_suites, recipe_suites, run_steps
from torch import Tensor

from cse_core.types import Batch, Negatives, Positives, StepContext

globals().update(part_suites("cse-tension"))  # a class of such a name takes its place
globals().update(recipe_suites("cse-tension", Path(__file__).parent / "settings"))


def entropy(logit: float, same: bool) -> float:
    """Return the binary cross entropy of a logit."""
    return math.log1p(math.exp(-logit if same else logit))


class TestLossTension(LossSuite):
    part = ("loss", "tension")
    options = {"different": 2}
    variants = ({"pairs": "published", "similarity": "cosine"},)
    published = False

    def slow(
        self, batch: Batch, targets: Positives, negatives: Negatives, ctx: StepContext, options: Any
    ) -> float:
        total, many = 0.0, len(negatives)
        for a, anchor in enumerate(batch.anchors):
            place = int(batch.owner[a])
            is_same = not self.published or place % 3 == 0
            wanted = (1 - is_same) if self.published else 2
            terms = [entropy(float(anchor @ targets.vectors[a, 0]), True)] if is_same else []
            for step in range(many):
                n = (min(place + 1, many) + step) % many
                weight = float(negatives.log_weights[a, n])
                if wanted and not negatives.mask[a, n] and weight > -math.inf:
                    logit = float(anchor @ negatives.vectors[n]) + weight
                    terms.append(entropy(logit, False))
                    wanted -= 1
            total += sum(terms) / max(len(terms), 1)
        return total / len(batch.anchors)


class TestPublishedTension(TestLossTension):
    options = {"different": 2, "pairs": "published"}
    variants = ()
    published = True


class TestLossLearnedInfonce(LossSuite):
    part = ("loss", "learned-infonce")
    options = {"start": 0.3}
    variants = ({"similarity": "dot", "start": 5.0},)

    def slow(
        self,
        batch: Batch,
        targets: Positives,
        negatives: Negatives,
        ctx: StepContext,
        options: Any,
        part: Any = None,
    ) -> float:
        scale = math.exp(part.log_scale.item())
        total = 0.0
        for a, anchor in enumerate(batch.anchors):
            own = math.exp(scale * cosine(anchor, targets.vectors[a, 0]))
            away = sum(
                math.exp(scale * cosine(anchor, vector) + float(negatives.log_weights[a, n]))
                for n, vector in enumerate(negatives.vectors)
                if not negatives.mask[a, n]
            )
            total -= math.log(own / (own + away))
        return total / len(batch.anchors)


def cosine(one: Tensor, other: Tensor) -> float:
    return float(torch.cosine_similarity(one, other, dim=0))


def test_which_columns_an_anchor_takes() -> None:
    """Of five texts each takes the two behind it; a masked one is passed over."""
    mask = torch.eye(5).bool()
    mask[1, 2] = True
    negatives = Negatives.of(torch.zeros(5, 2), 5, name="batch", mask=mask)
    counts = torch.tensor([2, 2, 2, 0, 9])
    taken = first_that_follow(negatives, torch.arange(5), counts)
    rows = [row.nonzero()[:, 0].tolist() for row in taken]
    assert rows == [[1, 2], [3, 4], [3, 4], [], [0, 1, 2, 3]]
    assert first_that_follow(negatives, torch.arange(5), torch.ones(5).long()).sum() == 5


def test_both_encoders_train_apart() -> None:
    """They start equal, heads too; after steps both have moved, to other weights."""
    rig = run_steps({"pool": ["+mlp"]}, ["train.lr=0.01"], "tension", steps=0)
    branch, online = rig.session.parts["branch.twin"], rig.session.parts["branch.online"]
    assert list(branch.heads) == list(online.heads) == ["mlp"]
    assert branch.heads["mlp"] is not online.heads["mlp"]
    twin, online = rig.session.parts["branch.twin"].encoder, rig.session.encoder()
    start = {name: weight.clone() for name, weight in online.state_dict().items()}
    assert all(torch.equal(value, start[name]) for name, value in twin.state_dict().items())
    rig.step(2)
    one, two = twin.state_dict(), online.state_dict()
    moved = [name for name in start if not torch.equal(one[name], start[name])]
    assert moved and any(not torch.equal(two[name], start[name]) for name in moved)
    assert any(not torch.equal(one[name], two[name]) for name in moved)
