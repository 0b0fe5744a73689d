"""The step of fgsm, an epsilon that a number format does not hold, and places that are dropped."""

from typing import Any, cast

import pytest
import torch
from cse_testkit import make_context, make_part
from torch import Tensor

from cse_core.types import TokenBatch, View
from tests.fixtures.methods import planned
from tests.fixtures.token_rows import token_rows

TOKENS, VIEW = cast(Any, object()), View("positive", "positive", "online")


def perturbed(x: Tensor, gradient: Tensor, **options: Any) -> tuple[Tensor, dict[str, Any]]:
    logged: dict[str, Any] = {}
    part = make_part("aug", "fgsm", **options)
    return part(x, TOKENS, VIEW, make_context(gradient=gradient, log=logged)), logged


def test_a_relative_step_is_a_share_of_each_tokens_length() -> None:
    draws = torch.Generator().manual_seed(0)
    x = torch.randn(7, 16, generator=draws, dtype=torch.float64) * torch.arange(7).unsqueeze(1)
    gradient = torch.randn(7, 16, generator=draws, dtype=torch.float64)
    found, logged = perturbed(x, gradient, epsilon=0.05)
    step = found - x
    assert torch.allclose(step.norm(dim=1), 0.05 * x.norm(dim=1))
    assert torch.equal(step.sign()[1:], gradient.sign()[1:])
    assert torch.equal(found[0], x[0]), "an embedding of zeros has no size"
    assert float(logged["fgsm.positive.size"]) == pytest.approx(0.05)


def test_the_gradient_of_the_loss_reaches_the_table_through_it() -> None:
    x = torch.ones(2, 4, requires_grad=True)
    found, _ = perturbed(x, torch.ones(2, 4))
    found.square().sum().backward()
    assert torch.equal(x.grad, 2 * found.detach())  # type: ignore[arg-type]


def test_the_log_has_what_is_left_of_a_small_epsilon() -> None:
    """5e-9 is a unit in the last place of fp32 and lost in bf16; 0.05 of the size is in both."""
    x = 0.04 * torch.randn(50, 64, generator=torch.Generator().manual_seed(0))
    gradient = torch.randn(50, 64, generator=torch.Generator().manual_seed(1))
    for halved in (False, True):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=halved):
            _, small = perturbed(x, gradient, epsilon=5e-9, relative=False)
            _, large = perturbed(x, gradient, epsilon=0.05)
        assert float(small["fgsm.positive.size"]) < 1e-4
        assert float(large["fgsm.positive.size"]) == pytest.approx(0.05, rel=0.05)


def test_the_plan_warns_of_what_the_number_format_does_not_hold() -> None:
    for sets, wanted in (
        (["train.precision=fp32"], "about 1 unit in the last place in fp32, measured"),
        (["train.precision=bf16"], "is nothing in bf16, measured"),
        (["train.precision=auto"], "about 1 unit in the last place in fp32, measured"),
        (["train.precision=fp32", "aug.fgsm.epsilon=1e-9"], "about 0.2 unit in the last place"),
        (["train.precision=fp32", "aug.fgsm.epsilon=1e-8"], ""),
        (["train.precision=bf16", "aug.fgsm.epsilon=5e-8"], "nothing in bf16"),
        (["aug.fgsm.relative=true", "aug.fgsm.epsilon=0.01"], ""),
        (["train.precision=bf16", "aug.fgsm.relative=true", "aug.fgsm.epsilon=0.01"], "in bf16"),
        (["aug.fgsm.relative=true", "aug.fgsm.epsilon=0.05"], ""),
    ):
        found = [
            each
            for each in planned("mocose", *sets).warnings
            if each.startswith("aug.fgsm: epsilon")
        ]
        assert bool(found) == bool(wanted)
        assert not found or wanted in found[0]
    assert planned("mocose", "train.precision=auto").train.precision == "fp32"
    held = planned("mocose", "train.precision=auto", "aug.fgsm.epsilon=0.01")
    assert held.train.precision == "auto", "bf16 holds such a step"


def dropped(tokens: TokenBatch, step: int = 0, **options: object) -> list[Tensor]:
    """Return which tokens of each row lost their embedding."""
    part = make_part("aug", "token-drop", **options)
    x = torch.ones(len(tokens.ids), 4)
    found = part(x, tokens, VIEW, make_context(step=step))
    gone = found.eq(0).all(dim=1)
    assert torch.equal(found[~gone], x[~gone])
    return list(gone.split(tokens.lengths.tolist()))


def test_a_share_of_the_places_and_one_at_least() -> None:
    """A full row of 6 tokens; a seventh place is padding, which takes one away or does not."""
    tokens = token_rows(4)
    for rate, places, wanted in ((0.0, 7, 1), (0.1, 7, 1), (0.5, 7, 3), (0.9, 7, 6),
                                 (0.1, None, 1), (0.34, None, 2)):  # fmt: skip
        counts = {
            int(dropped(tokens, step, rate=rate, places=places)[0].sum()) for step in range(60)
        }
        assert counts == ({wanted} if places is None else {wanted - 1, wanted})


def test_padding_is_drawn_too() -> None:
    """Of 32 places int(32 * 0.1) = 3 are drawn; a row of 3 tokens loses 3 * 3 / 32 in the mean."""
    tokens = token_rows(*[1] * 400)
    counts = torch.stack(dropped(tokens, rate=0.1)).sum(dim=1)
    size = int(tokens.lengths[0])
    assert float(counts.float().mean()) == pytest.approx(3 * size / 32, abs=0.1)
    assert int((counts == 0).sum()) > 200, "most short rows stay as they are"


def test_every_place_has_its_turn_special_tokens_too() -> None:
    tokens = token_rows(*[4] * 300)
    seen = torch.stack(dropped(tokens, rate=0.1, places=None)).sum(dim=0)
    assert (seen > 25).all() and int(seen.sum()) == 300


def test_a_long_row_counts_its_own_length() -> None:
    assert int(dropped(token_rows(4, 1, 51), rate=0.5)[2].sum()) == 53 // 2
