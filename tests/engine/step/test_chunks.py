"""Gradient caching: chunks against one call, and encoded twice; casts of weights in bf16."""

from collections import Counter
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from cse_engine.runtime.device import resolve_precision
from tests.fixtures.tiny import CPU, Bench, Build

PLAIN = '[[pool]]\nuse = "cls"\n[[pool]]\nuse = "mlp"\n'
STORE = (
    PLAIN
    + """
[[negatives]]
use = "queue"
branch = "ema"
[[branch]]
use = "ema"
decay = 0.5
[[loss]]
use = "infonce"
directions = "both"
"""
)
SEGMENTS = """
[[pool]]
use = "cls"
[[pool]]
use = "cut"
before = false
[[pool]]
use = "mlp"
[[loss]]
use = "infonce"
name = "local"
level = "segment"
weight = 0.3
[[loss]]
use = "infonce"
[[aug]]
use = "double"
"""
PUSHES = (
    PLAIN
    + """
[[aug]]
use = "push"
name = "words"
gradient = "fresh"
point = "word_embeddings"
size = 0.5
[[aug]]
use = "push"
name = "inputs"
gradient = "fresh"
point = "input_embeddings"
size = 0.5
[[aug]]
use = "noise"
[[negatives]]
use = "extra-view"
[[loss]]
use = "infonce"
"""
)
PREVIOUS = (
    PLAIN
    + """
[[aug]]
use = "push"
gradient = "previous"
size = 0.5
views = ["anchor", "positive"]
[[loss]]
use = "infonce"
"""
)
RECIPES = {
    "plain": PLAIN, "store": STORE, "segments": SEGMENTS, "pushes": PUSHES, "previous": PREVIOUS
}  # fmt: skip


def close_gradients(parts: Bench, whole: Bench, far: float, noise: float = 1e-6) -> None:
    """Compare the gradient of each weight, so that none hides in the norm of all."""
    for name, gradient in whole.gradients.items():
        found = parts.gradients[name]
        assert (found - gradient).norm() < far * gradient.norm() + noise, name
        assert bool(found.any()) == bool(gradient.any()), name


UNDRAWN = {**RECIPES, "pushes": PUSHES.replace('[[aug]]\nuse = "noise"\n', "")}


@pytest.mark.parametrize("recipe", RECIPES)
def test_chunks_equal_one_call_without_dropout(recipe: str, build: Build) -> None:
    whole, parts = (
        build(UNDRAWN[recipe], "model.dropout=0", "train.lr=1e-4", *chunk)
        for chunk in ([], ["train.chunk_size=3"])
    )
    for step in range(3):
        one, other = (bench.step(step).loss for bench in (whole, parts))
        torch.testing.assert_close(one, other, rtol=2e-5, atol=2e-5)
        close_gradients(parts, whole, 1e-3)


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_chunk_is_encoded_again_as_the_losses_saw_it(recipe: str, build: Build) -> None:
    """With its dropout and noise; else the gradients would be those of other vectors."""
    bench = build(RECIPES[recipe], "train.chunk_size=3", "model.dropout=0.1")
    seen: dict[bool, list[Tensor]] = {False: [], True: []}
    bench.assembly.online.encoder.register_forward_hook(
        lambda _, given, found: seen[torch.is_grad_enabled()].append(found.last.detach())
    )
    for step in range(3):
        bench.step(step)
    assert len(seen[True]) == len(seen[False]) >= 9
    for first, again in zip(seen[False], seen[True], strict=True):
        torch.testing.assert_close(again, first, rtol=1e-6, atol=1e-6)


class WeightCasts(TorchDispatchMode):
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


def bench_in_bf16(build: Build, recipe: str, *sets: str) -> Bench:
    bench = build(recipe, "model.dropout=0.1", *sets)
    precision = resolve_precision("bf16", CPU)
    bench.engine.passes.precision = precision
    return bench


@pytest.mark.parametrize(("chunk", "most"), [(8, 1), (3, 2), (1, 2)])
def test_chunks_cast_no_weight_again(build: Build, chunk: int, most: int) -> None:
    """With and without gradient are two passes; in one there is nothing to do twice."""
    bench = bench_in_bf16(build, PLAIN, f"train.chunk_size={chunk}")
    with WeightCasts(bench) as seen:
        bench.step()
    assert seen.counts and max(seen.counts.values()) <= most


@pytest.mark.parametrize("recipe", [PLAIN, STORE])
def test_gradients_in_bf16_are_those_of_one_call(build: Build, recipe: str) -> None:
    whole, parts = (
        bench_in_bf16(build, recipe, "model.dropout=0", "train.lr=1e-4", *chunk)
        for chunk in ([], ["train.chunk_size=3"])
    )
    for step in range(2):
        whole.step(step)
        parts.step(step)
        close_gradients(parts, whole, 0.05, 1e-4)
