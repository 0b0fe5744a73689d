"""In bf16 the weights are cast once for all chunks of a pass, and still have their gradients."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from cse_core.runtime.device import resolve_precision
from tests.core.engine.test_chunks import PLAIN, STORE, reference
from tests.fixtures.tiny import CPU, Bench


class WeightCasts(TorchDispatchMode):
    """Counts casts of each weight to bf16."""

    def __init__(self, bench: Bench) -> None:
        super().__init__()
        roots = [bench.assembly.online.encoder, *(part for _, part in bench.assembly.modules())]
        modules = [module for root in roots for module in root.modules()]
        self.weights = {
            module.weight.data_ptr(): name
            for name, module in enumerate(modules)
            if isinstance(module, torch.nn.Linear)
        }
        self.counts: Counter[int] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = kwargs or {}
        if func is torch.ops.aten._to_copy.default and named.get("dtype") == torch.bfloat16:
            name = self.weights.get(args[0].data_ptr())
            if name is not None:
                self.counts[name] += 1
        return func(*args, **named)


def bench_in_bf16(encoder: str, folder: Path, recipe: str, *sets: str) -> Bench:
    bench = Bench(encoder, folder, recipe, "model.dropout=0.1", *sets)
    precision = resolve_precision("bf16", CPU)
    bench.engine.setup = replace(bench.engine.setup, precision=precision)
    return bench


@pytest.mark.parametrize(("chunk", "most"), [(8, 1), (3, 2), (1, 2)])
def test_chunks_cast_no_weight_again(encoder: str, folder: Path, chunk: int, most: int) -> None:
    """With and without gradient are two passes; in one there is nothing to do twice."""
    bench = bench_in_bf16(encoder, folder, PLAIN, f"train.chunk_size={chunk}")
    with WeightCasts(bench) as seen:
        bench.step()
    assert seen.counts and max(seen.counts.values()) <= most


@pytest.mark.parametrize("recipe", [PLAIN, STORE])
def test_gradients_are_those_of_the_same_chunks_with_the_graph_kept(
    encoder: str, folder: Path, recipe: str
) -> None:
    bench = bench_in_bf16(encoder, folder, recipe, "train.chunk_size=3")
    for step in range(2):
        value, gradients = reference(bench, step)
        result = bench.step(step)
        torch.testing.assert_close(result.loss, value, rtol=1e-6, atol=1e-6)
        for name, expected in gradients.items():
            torch.testing.assert_close(
                bench.gradients[name], expected, rtol=1e-2, atol=1e-4, msg=f"{step} {name}"
            )
        assert all(
            bool(bench.gradients[name].any()) == bool(each.any())
            for name, each in gradients.items()
        )
