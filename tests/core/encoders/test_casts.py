"""In bf16 what several linear layers read is cast once, which changes no output."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from cse_core.encoders.encoder import PackedEncoder
from cse_core.encoders.shortcuts import AutocastInputCache
from tests.core.encoders.test_encoder import LENGTHS, SIZES, bert, distilbert, encode, rows

ONCE_EACH = 2 * SIZES["num_hidden_layers"]
"""What queries, keys and values are made of, and what the middle of a layer is made of."""


class Casts(TorchDispatchMode):
    """Counts casts of states to bf16; weights have one or two dimensions, states three."""

    count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = kwargs or {}
        if func is torch.ops.aten._to_copy.default and named.get("dtype") == torch.bfloat16:
            self.count += args[0].dim() == 3
        return func(*args, **named)


def in_bf16(encoder: PackedEncoder, **asked: Any) -> Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return encode(encoder, LENGTHS, **asked).last


@pytest.mark.parametrize("make", [bert, distilbert])
@pytest.mark.parametrize("attention", ["packed", "padded"])
def test_a_layer_casts_its_input_and_its_middle_once(make: Any, attention: Any) -> None:
    torch.manual_seed(0)
    encoder = PackedEncoder(make(), attention=attention).eval()
    with Casts() as casts, torch.no_grad():
        in_bf16(encoder)
    assert casts.count == ONCE_EACH


def test_outputs_are_equal_and_gradients_within_precision(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    torch.manual_seed(0)
    encoder = PackedEncoder(bert()).eval()
    found = []
    for _ in range(2):
        encoder.zero_grad()
        last = in_bf16(encoder, read=rows(LENGTHS)[2][:-1])
        last.float().square().sum().backward()
        found.append((last, [each.grad for each in encoder.parameters() if each.grad is not None]))
        monkeypatch.setattr(encoder._casts, "keeping", nullcontext)
    (shared, ours), (apart, theirs) = found
    assert torch.equal(shared, apart)
    assert len(ours) == len(theirs) > 40
    for a, b in zip(ours, theirs, strict=True):
        assert (a - b).norm() <= 1e-2 * b.norm() + 1e-4


def test_nothing_is_kept_behind_a_pass_or_cast_outside_one() -> None:
    encoder = PackedEncoder(bert()).eval()
    in_bf16(encoder)
    assert encoder._casts._states is None and encoder._casts._cast is None
    linear = nn.Linear(4, 4)
    casts = AutocastInputCache()
    casts.watch(linear)
    seen = []
    linear.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].dtype))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        linear(torch.ones(2, 4))
    with casts.keeping():
        linear(torch.ones(2, 4))
    assert seen == [torch.float32, torch.float32]


def test_states_changed_in_place_are_cast_anew() -> None:
    casts, linear = AutocastInputCache(), nn.Linear(4, 4)
    casts.watch(linear)
    states = torch.ones(2, 4)
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16), casts.keeping():
        first = linear(states)
        again = linear(states)
        states.mul_(3.0)
        changed = linear(states)
    assert torch.equal(first, again)
    assert not torch.equal(first, changed)


def test_inference_mode_and_passes_with_gradient_cast_for_themselves() -> None:
    encoder = PackedEncoder(bert()).eval()
    with torch.inference_mode():
        inferred = in_bf16(encoder)
    assert torch.equal(inferred, in_bf16(encoder))
    casts, linear = AutocastInputCache(), nn.Linear(4, 4)
    casts.watch(linear)
    states = torch.ones(2, 4, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16), casts.keeping():
        with torch.no_grad():
            linear(states)
        linear(states).sum().backward()
    assert states.grad is not None


def test_a_copy_casts_for_itself() -> None:
    encoder = PackedEncoder(bert()).eval()
    twin = encoder.copy()
    assert twin._casts is not encoder._casts
    with Casts() as casts, torch.no_grad():
        in_bf16(twin)
    assert casts.count == ONCE_EACH
