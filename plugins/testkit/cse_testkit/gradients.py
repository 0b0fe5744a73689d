"""Whether a gradient is the slope of what was computed: halved, flipped and cut ones are not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from cse_testkit.watching import tensors_of

_STEPS = {torch.float64: 1e-3, torch.float32: 2e-2}
"""Length of the step over which a slope is measured."""
_NEAR = 0.05
"""Relative difference of two slopes that are taken for equal."""
_LEAST = 1e-5
"""Slopes below this one are taken for zero."""
STOPPED = "(behind a stop-gradient that is meant: declare it in [tool.cse.unchecked])"
"""What a fault ends with."""
Leaves = Mapping[str, Tensor]
Samples = Iterable[tuple[Callable[[Leaves], Tensor], Leaves]]


def fault(samples_in: Callable[[torch.dtype], Samples]) -> str:
    """Describe a gradient that is not the slope in most samples; "" where there is none.

    Args:
        samples_in: Of a number format, functions of tensors by name that return a scalar, with
            these tensors. What cannot compute in float64 is asked in float32.
    """
    try:
        return _fault(samples_in(torch.float64))
    except RuntimeError as error:
        if "type" not in str(error):
            raise
        return _fault(samples_in(torch.float32))


def _fault(samples: Samples) -> str:
    said: dict[str, list[str]] = {}
    for seed, (function, leaves) in enumerate(samples):
        for name, text in _compare(function, leaves, seed):
            said.setdefault(name, []).append(text)
    for texts in said.values():
        wrong = [text for text in texts if text]
        if 2 * len(wrong) > len(texts):
            return wrong[0]
    return ""


def _compare(
    function: Callable[[Leaves], Tensor], leaves: Leaves, seed: int
) -> Iterator[tuple[str, str]]:
    """Yield each leaf with what its gradient is beside the slope, "" where they are equal.

    Leaves at which the function has a kink, or is too coarse to measure, are passed over.
    """
    made = {name: leaf.detach().clone().requires_grad_(True) for name, leaf in leaves.items()}
    value = function(made)
    gradients: tuple[Tensor | None, ...] = (None,) * len(made)
    if value.requires_grad:
        gradients = torch.autograd.grad(value, list(made.values()), allow_unused=True)
    for (name, leaf), gradient in zip(leaves.items(), gradients, strict=True):
        draws = torch.Generator().manual_seed(seed)
        along = torch.randn(leaf.shape, generator=draws, dtype=leaf.dtype)
        along = along / along.norm().clamp_min(1e-12)
        step = _STEPS[leaf.dtype] * along
        one, two = (_slope(function, leaves, name, far) for far in (step, 2 * step))
        if not _equal(one, two):
            continue
        said = 0.0 if gradient is None else float((gradient * along).sum())
        smallest = torch.finfo(value.dtype).eps * abs(float(value.detach())) / float(step.norm())
        if _equal(one, said) or max(abs(one), abs(said)) < smallest:
            yield name, ""
        elif abs(said) < _LEAST:
            yield name, f"the gradient of the {name} is cut: its slope is {one:.3g}, not 0"
        else:
            times = f"{said / one:.3g} times its slope" if one else f"{said:.3g}, its slope 0"
            yield name, f"the gradient of the {name} is {times}"


def projected(result: Any, seed: int = 0) -> Tensor:
    """Return the sum of the numbers of a result, each with a weight of its own."""
    draws = torch.Generator().manual_seed(seed)
    total = torch.zeros((), dtype=torch.float64)
    for tensor in tensors_of(result):
        if tensor.is_floating_point():
            weights = torch.randn(tensor.shape, generator=draws, dtype=torch.float64)
            total = total + (tensor.double() * weights).sum()
    return total


def _slope(function: Callable[[Leaves], Tensor], leaves: Leaves, name: str, step: Tensor) -> float:
    with torch.no_grad():
        ends = [function({**leaves, name: leaves[name] + sign * step}) for sign in (1, -1)]
    return float(ends[0] - ends[1]) / (2 * float(step.norm()))


def _equal(one: float, two: float) -> bool:
    return abs(one - two) <= _NEAR * max(abs(one), abs(two)) + _LEAST
