"""Both losses, their sum and alpha in loops."""

import math
from collections.abc import Iterator
from dataclasses import replace

from cse_iscse.alpha import quarter_cosine
from cse_testkit import make_batch, make_context, make_part
from torch import Tensor

from cse_core.options import LossOptions
from cse_core.schedule import Schedule
from cse_core.types import Batch
from cse_engine.step import negatives as core
from tests.fixtures.equations import equation

TEMPERATURE = 0.05


def loss_of(batch: Batch, target: str) -> Tensor:
    loss = make_part("loss", "infonce", temperature=TEMPERATURE)
    negatives = core.negatives_for_loss(batch, LossOptions(target=target), ())
    value: Tensor = loss(batch, batch.targets[target], negatives, make_context(batch)).value
    return value


def contrast(anchors: Tensor, others: Tensor) -> float:
    """Return the mean ``-log p`` of each anchor's own among all of the others."""
    total = 0.0
    for i, anchor in enumerate(anchors):
        masses = [
            math.exp(float(anchor @ other / (anchor.norm() * other.norm())) / TEMPERATURE)
            for other in others
        ]
        total -= math.log(masses[i] / sum(masses))
    return total / len(anchors)


def smoothed_batch() -> Batch:
    """Return a batch with its smoothed group: its buffer is full."""
    miner, earlier = make_part("positives", "knn-smoothing", size=12, k=3), make_batch(sentences=8)
    miner.after_step(earlier, make_context(earlier))
    batch = make_batch(seed=1)
    return replace(batch, targets={**batch.targets, **miner.mine(batch, make_context(batch))})


@equation("IS-CSE", "Eqs. 1 and 2, the loss of instances", "loss.infonce of recipe is-cse")
def test_the_loss_of_instances() -> Iterator[tuple[Tensor, float]]:
    batch = smoothed_batch()
    yield (
        loss_of(batch, "positive"),
        contrast(batch.anchors, batch.targets["positive"].vectors[:, 0]),
    )


@equation(
    "IS-CSE",
    "Eqs. 6 and 7, the loss of smoothed positives and the sum",
    "loss.smoothed of recipe is-cse",
)
def test_the_smoothed_loss() -> Iterator[tuple[Tensor, float]]:
    """Negatives are the other smoothed vectors of the batch."""
    batch = smoothed_batch()
    smoothed = batch.targets["knn-smoothing"].vectors[:, 0]
    yield loss_of(batch, "knn-smoothing"), contrast(batch.anchors, smoothed)


@equation("IS-CSE", "Eq. 8", "schedule quarter-cosine of loss.smoothed.weight", within=1e-15)
def test_alpha() -> Iterator[tuple[float, float]]:
    for start, end in ((0.005, 0.05), (0.05, 0.1), (0.005, 0.1), (0.1, 0.1)):
        schedule = Schedule.parse(
            f"quarter-cosine({start},{end})", {"quarter-cosine": quarter_cosine}
        )
        for step in range(101):
            printed = min(math.cos(math.pi * step / 100) * (start - end), 0) + end
            yield schedule.at(step, 100), printed
