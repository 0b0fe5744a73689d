"""Gradient caching against the same chunks with the whole graph kept; casts of weights in bf16."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from cse_core.engine.input_gradients import GradientCapture
from cse_core.engine.passes import StepPasses
from cse_core.engine.step import Engine
from cse_core.runtime.device import resolve_precision
from cse_core.runtime.seeds import StepPosition
from cse_core.types import Embeddings
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


def graph_kept(engine: Engine, work: StepPasses, capture: GradientCapture, inputs: bool) -> Tensor:
    """Run the objective over the chunks with the graph kept; collect the gradients."""
    work.vectors = {}
    for planned, names in work.of_the_objective():
        with torch.set_grad_enabled(planned.gradient):
            pieces = [
                work.call(planned.branch, names, number, capture, {})
                for number in range(len(work.chunks))
            ]
        for name in names:
            work.vectors[name] = {
                level: replace(
                    Embeddings.join([piece[name][level] for piece in pieces]),
                    owner=work.keys[name][level].owner,
                    slot=work.keys[name][level].slot,
                )
                for level in pieces[0][name]
            }
    objective = engine._objective(work.vectors, work)
    assert objective.value is not None
    if inputs:
        found = torch.autograd.grad(objective.value, capture.tensors, allow_unused=True)
        capture.collect(found)
    else:
        objective.value.backward()
    return objective.value.detach()


def reference(bench: Bench, step: int) -> tuple[Tensor, dict[str, Tensor]]:
    engine = bench.engine
    index = (torch.arange(8) + step * 8) % len(bench.corpus)
    work = StepPasses(
        engine.setup, index, StepPosition(step, 20, 0, 0), {}, {"previous": engine.previous}
    )
    if engine.fresh_points:
        off = frozenset(a.planned.path for a in bench.assembly.augmenters if a.gradient == "fresh")
        trial, capture = work.gradient_probe(off), GradientCapture(engine.fresh_points)
        graph_kept(engine, trial, capture, inputs=True)
        fields = capture.fields(work.views, engine.input_sizes, engine.device)
        work.fields = {"previous": engine.previous, "fresh": fields}
    value = graph_kept(engine, work, GradientCapture(frozenset()), inputs=False)
    found = {
        name: torch.zeros_like(p) if p.grad is None else p.grad.clone()
        for name, p in bench.optimizer.named.items()
    }
    bench.optimizer.adamw.zero_grad(set_to_none=True)
    return value, found


def beside_the_graph_kept(bench: Bench, steps: int, rtol: float, atol: float) -> Iterator[Any]:
    """Compare steps with those whose graph is kept, and yield the gradients of these."""
    for step in range(steps):
        value, gradients = reference(bench, step)
        result = bench.step(step)
        torch.testing.assert_close(result.loss, value, rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(bench.gradients, gradients, rtol=rtol, atol=atol)
        yield gradients


@pytest.mark.parametrize("recipe", RECIPES)
def test_chunks_equal_the_same_chunks_with_the_graph_kept(recipe: str, build: Build) -> None:
    bench = build(RECIPES[recipe], "train.chunk_size=3", "model.dropout=0.1")
    for _ in beside_the_graph_kept(bench, 3, 1e-4, 1e-5):
        assert any(bool(g.any()) for g in bench.gradients.values())


UNDRAWN = {**RECIPES, "pushes": PUSHES.replace('[[aug]]\nuse = "noise"\n', "")}


@pytest.mark.parametrize("recipe", RECIPES)
def test_chunks_equal_one_call_without_dropout(recipe: str, build: Build) -> None:
    benches = [
        build(UNDRAWN[recipe], "model.dropout=0", "train.lr=1e-4", *chunk)
        for chunk in ([], ["train.chunk_size=3"])
    ]
    for step in range(3):
        one, other = (bench.step(step) for bench in benches)
        torch.testing.assert_close(one.loss, other.loss, rtol=2e-5, atol=2e-5)
        whole, parts = (
            torch.cat([each.flatten() for each in bench.gradients.values()]) for bench in benches
        )
        assert (whole - parts).norm() < 1e-3 * whole.norm()


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
    bench.engine.setup = replace(bench.engine.setup, precision=precision)
    return bench


@pytest.mark.parametrize(("chunk", "most"), [(8, 1), (3, 2), (1, 2)])
def test_chunks_cast_no_weight_again(build: Build, chunk: int, most: int) -> None:
    """With and without gradient are two passes; in one there is nothing to do twice."""
    bench = bench_in_bf16(build, PLAIN, f"train.chunk_size={chunk}")
    with WeightCasts(bench) as seen:
        bench.step()
    assert seen.counts and max(seen.counts.values()) <= most


@pytest.mark.parametrize("recipe", [PLAIN, STORE])
def test_gradients_in_bf16_are_those_with_the_graph_kept(build: Build, recipe: str) -> None:
    bench = bench_in_bf16(build, recipe, "train.chunk_size=3")
    for gradients in beside_the_graph_kept(bench, 2, 1e-2, 1e-4):
        assert all(
            bool(bench.gradients[name].any()) == bool(each.any())
            for name, each in gradients.items()
        )
