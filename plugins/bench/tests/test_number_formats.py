"""Loops in other number formats share batches, weights and moments."""

from __future__ import annotations

from pathlib import Path

import torch
from cse_bench.steps import with_precision

from cse_core.runtime.device import resolve_precision
from cse_core.training.checkpoint import weights
from tests.core.training.test_loop import copied, loop_of
from tests.fixtures.tiny import CPU


def test_another_number_format_trains_the_same_weights(encoder: str, tmp_path: Path) -> None:
    loop = loop_of(encoder, tmp_path)
    other = with_precision(loop, resolve_precision("bf16", CPU))
    before = copied(loop)
    other.step()
    assert (loop.done, other.done) == (0, 1)
    assert other.assembly is loop.assembly and other.optimizer is loop.optimizer
    assert any(not torch.equal(v, before[n]) for n, v in weights(loop.assembly).items())
