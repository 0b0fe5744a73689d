"""IS-CSE's own code, run unmodified, gave these numbers; the parts give the same."""

from dataclasses import replace
from typing import Any, cast

import pytest
import torch
from cse_iscse.alpha import quarter_cosine
from cse_testkit import make_batch, make_context, make_part
from torch import Tensor

from cse_core.options import LossOptions
from cse_core.schedule import Schedule
from cse_core.types import Batch
from cse_engine.step import negatives as core
from tests.shared import golden, tensor


@pytest.fixture(scope="module")
def numbers() -> dict[str, Any]:
    found: dict[str, Any] = golden("iscse_smoothing")
    return found


def batch_of(numbers: dict[str, Any]) -> Batch:
    views = [tensor(numbers[name]).requires_grad_(True) for name in ("z1", "z2")]
    return make_batch({"anchor": views[0], "positive": views[1]})


def loss_of(numbers: dict[str, Any], batch: Batch, target: str) -> Tensor:
    loss = make_part("loss", "infonce", temperature=numbers["temp"])
    negatives = core.negatives_for_loss(batch, LossOptions(target=target), ())
    return cast(Tensor, loss(batch, batch.targets[target], negatives, make_context(batch)).value)


@pytest.mark.parametrize("case", [0, 1])
def test_a_full_buffer(numbers: dict[str, Any], case: int) -> None:
    """Neighbours, z*, both losses and their gradients, and the buffer before and after."""
    wanted, atol = numbers["cases"][case], numbers["suggested_atol"]
    before = tensor(wanted["buffer_before"])
    miner = make_part(
        "positives", "knn-smoothing", size=len(before), k=wanted["k"], beta=wanted["beta"]
    )
    miner.buffer.push(before, torch.arange(len(before)) + 20, len(before))
    batch = batch_of(numbers)
    ctx = make_context(batch)
    smoothed = miner.mine(batch, ctx)["knn-smoothing"]
    assert torch.allclose(smoothed.vectors[:, 0], tensor(wanted["smoothed"]), rtol=0, atol=atol)

    seen = miner.buffer.after(
        torch.nn.functional.normalize(batch.targets["positive"].vectors[:, 0].detach(), dim=1),
        batch.row,
        len(before),
    )
    ranks = (seen.vectors[-4:] @ seen.vectors.T).topk(wanted["k"] + 1, dim=1).indices
    assert ranks.tolist() == wanted["rank_order_top_k_plus_1"]

    both = replace(batch, targets={**batch.targets, "knn-smoothing": smoothed})
    instance = loss_of(numbers, both, "positive")
    smoothing = loss_of(numbers, both, "knn-smoothing")
    total = instance + wanted["alpha"] * smoothing
    for found, name in ((instance, "instance"), (smoothing, "smoothing"), (total, "total")):
        assert float(found.detach()) == pytest.approx(wanted[f"loss_{name}"], abs=atol)
    views = [batch.views[name]["sentence"].vectors for name in ("anchor", "positive")]
    for found, name in zip(torch.autograd.grad(total, views), ("z1", "z2"), strict=True):
        assert torch.allclose(found, tensor(wanted[f"grad_{name}"]), rtol=0, atol=atol)

    miner.after_step(batch, ctx)
    state = miner.state_dict()
    assert torch.allclose(state["vectors"], tensor(wanted["buffer_after"]), rtol=0, atol=atol)
    assert state["row"].tolist() == [*range(24, 32), 0, 1, 2, 3]


def test_nothing_is_smoothed_before_the_buffer_is_full(numbers: dict[str, Any]) -> None:
    """Their buffer begins with zeros, ours empty: the same steps smooth, with the same losses."""
    wanted = numbers["warmup"]
    miner = make_part("positives", "knn-smoothing", size=wanted["buffer_rows"], k=3)
    batch = batch_of(numbers)
    for step, active in enumerate(wanted["smoothing_active_at_step"]):
        ctx = make_context(batch, step=step)
        found = miner.mine(batch, ctx)
        assert bool(found) == active, step
        total = loss_of(numbers, batch, "positive")
        if found:
            both = replace(batch, targets={**batch.targets, **found})
            total = total + 0.1 * loss_of(numbers, both, "knn-smoothing")
        expected = wanted["step_losses"][step]
        assert float(total.detach()) == pytest.approx(expected, abs=numbers["suggested_atol"])
        miner.after_step(batch, ctx)


def test_alpha(numbers: dict[str, Any]) -> None:
    """Eq. 8 is quarter-cosine; where it falls below its end, a schedule is refused instead."""
    curves = {"quarter-cosine": quarter_cosine}
    for each in numbers["alpha_schedule"]:
        start, end, steps = each["alpha_start"], each["alpha_end"], each["max_steps"]
        text = f"quarter-cosine({start},{end})"
        if start > end:
            with pytest.raises(ValueError, match="needs a <= b"):
                Schedule.parse(text, curves)
            continue
        schedule = Schedule.parse(text, curves)
        for step, alpha in each["step_to_alpha"].items():
            assert schedule.at(int(step), steps) == pytest.approx(alpha, abs=1e-12)
