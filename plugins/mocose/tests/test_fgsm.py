"""The step of fgsm, and what is said of an epsilon that the number format does not hold."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest
import torch
from cse_testkit import (
    ENCODERS,
    installed_registry,
    make_context,
    make_part,
)
from torch import Tensor

from cse_core.recipes.compose import resolve
from cse_core.types import View

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


def test_entries_without_a_gradient_stay() -> None:
    x, gradient = torch.ones(2, 4), torch.tensor([[1.0, 0.0, -2.0, 0.0], [0.0] * 4])
    found, _ = perturbed(x, gradient, epsilon=0.5, relative=False)
    assert found.tolist() == [[1.5, 1.0, 0.5, 1.0], [1.0] * 4]


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
    facts = replace(ENCODERS["bert-base"], columns=("text",))
    for sets, wanted in (
        (["train.precision=fp32"], "about 1 unit in the last place in fp32, measured"),
        (["train.precision=bf16"], "is nothing in bf16, measured"),
        (["train.precision=auto"], "about 1 unit in the last place in fp32 and nothing in bf16"),
        (["train.precision=fp32", "aug.fgsm.epsilon=1e-9"], "about 0.2 unit in the last place"),
        (["train.precision=fp32", "aug.fgsm.epsilon=1e-8"], ""),
        (["train.precision=bf16", "aug.fgsm.epsilon=5e-8"], "nothing in bf16"),
        (["aug.fgsm.relative=true", "aug.fgsm.epsilon=0.01"], "in bf16"),
        (["aug.fgsm.relative=true", "aug.fgsm.epsilon=0.05"], ""),
    ):
        made = resolve(installed_registry(), recipe="mocose", sets=sets, model="bert", facts=facts)
        found = [each for each in made.warnings if each.startswith("aug.fgsm: epsilon")]
        assert bool(found) == bool(wanted)
        assert not found or wanted in found[0]
