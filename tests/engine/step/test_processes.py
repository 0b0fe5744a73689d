"""Two processes against one: the same losses and weights without dropout."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from cse_core.errors import CseError
from cse_core.types import LossOutput
from cse_engine.runtime import distributed
from cse_engine.step import objective
from tests.fixtures.process import BATCHES, PAIRS, SEGMENTS, Event, Found, steps, whole
from tests.fixtures.processes import TwoProcesses
from tests.fixtures.tiny import Build, metrics, sentences

SHARED = "tests.fixtures.process:shared"
GATHERS = ("all_gather_single", "all_gather_into_tensor")
"""The same call; the second is its name before torch 2.13."""
PLAIN = """
[[pool]]
use = "cls"
[[pool]]
use = "mlp"
[[negatives]]
use = "queue"
branch = "ema"
[[branch]]
use = "ema"
decay = 0.5
[[loss]]
use = "infonce"
directions = "both"
[[loss]]
use = "bias"
"""


def close(found: dict[str, Tensor], expected: dict[str, Tensor], far: float = 1e-4) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        if name.endswith("key.bias"):
            continue  # a softmax does not feel it: its gradient is rounding, which Adam scales up
        if value.is_floating_point():
            difference = (found[name] - value).norm() / value.norm().clamp_min(0.1)
            assert difference < far, (name, float(difference))
        else:
            assert torch.equal(found[name], value), name


def as_one(
    two: TwoProcesses, folder: Path, encoder: str, recipe: str, *sets: str,
    batches: list[list[int]] = BATCHES, pairs: int = PAIRS, rtol: float = 1e-4, far: float = 1e-4,
    columns: Any = None,
) -> tuple[Found, list[tuple[list[list[Event]], list[int]]]]:  # fmt: skip
    """Check that two processes come to the losses and weights of one.

    ``pairs`` are those of a tile in the two; losses may differ by ``rtol`` and weights by ``far``.

    Returns:
        What one comes to; what each of the two says in its steps, and the bytes of its weights.
    """
    job = {
        "encoder": encoder, "recipe": recipe, "columns": columns or {"text": sentences(24)},
        "sets": sets, "batches": batches, "pairs": pairs,
    }  # fmt: skip
    expected, losses = steps(job, folder)
    both = two(SHARED, "watched", job, str(folder))
    for (found, numbers), _, _ in both:
        np.testing.assert_allclose(numbers, losses, rtol=rtol, atol=rtol / 10)
        close(found, expected, far)
    return (expected, losses), [(said, trained) for _, said, trained in both]


def test_what_a_step_says(encoder: str, folder: Path, two_processes: TwoProcesses) -> None:
    for recipe, chunk in ((PLAIN, "none"), (PLAIN, "2"), (SEGMENTS, "3")):
        sets = ("model.dropout=0", "train.lr=1e-4", f"train.chunk_size={chunk}")
        _, both = as_one(two_processes, folder, encoder, recipe, *sets)
        for said, trained in both:
            for batch, calls in zip(BATCHES, said, strict=True):
                check_step(recipe == PLAIN, len(batch), calls, trained)


def check_step(plain: bool, rows: int, calls: list[Event], trained: list[int]) -> None:
    """Check what a process says in a step of so many rows; weights have ``trained`` bytes."""
    sums = [given for name, given in calls if name == "all_reduce"]
    gathers = [given for name, given in calls if name in GATHERS]
    assert len(sums) + len(gathers) == len(calls), "nothing else is said"
    # One small message, of a number for each weight: how many processes had a gradient.
    gradients = [8 * len(trained), sum(trained)]
    if not plain:
        # Vectors of the pass for inputs' gradients and of the other, and these gradients.
        assert len(gathers) <= 4 and gradients[0] in sums
        return
    # Two views, and one that the queue's branch encodes, with a number for each row.
    assert gathers == [-(-rows // 2) * 3 * (4 * 32 + 8)]
    assert sums == gradients


def test_two_processes_train_a_run_count_and_choose_as_one(
    encoder: str, folder: Path, two_processes: TwoProcesses
) -> None:
    """Equal sentences are no negatives where one process does not encode both, nor in the queue."""
    texts = sentences(17)
    texts[7], texts[10] = texts[0], texts[1]
    for how in ("keep", "mask"):
        one, two = folder / how / "one", folder / how / "two"
        one.mkdir(parents=True)
        job = {
            "encoder": encoder, "recipe": PLAIN, "columns": {"text": texts},
            "sets": [
                "model.dropout=0", "train.lr=1e-4", "train.batch_size=12", "train.eval_steps=1",
                "train.log_steps=1", f"loss.infonce.same_text={how}",
            ],
        }  # fmt: skip
        expected, numbers = whole({**job, "out": str(one / "run")}, one)
        both = two_processes(SHARED, "whole", {**job, "out": str(two)}, str(folder / how))
        for found, scores in both:
            np.testing.assert_allclose(scores, numbers, atol=1e-6)
            close(found, expected)
        assert (two / "model" / "modules.json").is_file()
        alone, shared = (
            [
                {k: v for k, v in line.items() if "negatives" in k or "same_text" in k}
                for line in run
            ]
            for run in (metrics(one / "run"), metrics(two))
        )
        assert alone == shared and "infonce.negatives.queue.age" in alone[-1]
        counted = [line[f"infonce.same_text.{'masked' if how == 'mask' else 'seen'}"]
                   for line in alone]  # fmt: skip
        assert max(counted) > 0


def test_gradients_are_summed_where_a_process_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the optimiser would decay it, as it does not in one process."""
    sums = []

    def twice(values: Tensor, how: object = None, group: object = None) -> None:
        sums.append(len(values))
        values.mul_(2)

    monkeypatch.setattr(distributed, "cpu_group", lambda: None)
    monkeypatch.setattr(distributed.dist, "all_reduce", twice)
    shared, whole, unused = (torch.nn.Parameter(torch.ones(3)) for _ in range(3))
    other = torch.nn.Parameter(torch.ones(2, dtype=torch.float64))
    frozen = torch.nn.Parameter(torch.ones(3), requires_grad=False)
    for size in (1, 2):
        monkeypatch.setattr(distributed, "rank_and_size", lambda size=size: (0, size))
        for parameter in (shared, whole, other):
            parameter.grad = torch.full_like(parameter, 4.0)
        distributed.sum_gradients([shared, other, frozen], [whole, unused, shared])
        assert torch.equal(whole.grad, torch.full((3,), 4.0))
        assert torch.equal(shared.grad, torch.full((3,), 4.0 * size))
        assert torch.equal(other.grad, torch.full_like(other, 4.0 * size))
        assert unused.grad is None and frozen.grad is None
    assert sums == [4, 6, 2], "flags, then one sum for each number format"


def test_a_loss_that_encodes_needs_one_process(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = build('[[pool]]\nuse = "cls"\n[[loss]]\nuse = "infonce"\n')
    loss, online = bench.part("loss.infonce"), bench.assembly.online.encoder

    class Encoding(type(loss)):  # type: ignore[misc]
        def __call__(self, *given: Any) -> LossOutput:
            words = online.word_embeddings(torch.tensor([5, 6]))
            hidden = online(words, torch.tensor([0, 1]), torch.tensor([0, 2]))
            out: LossOutput = super().__call__(*given)
            return LossOutput(out.value + hidden.last.square().mean())

    loss.__class__ = Encoding
    bench.step(0)
    monkeypatch.setattr(objective, "rank_and_size", lambda: (0, 2))
    with pytest.raises(CseError, match="loss.infonce: encodes by itself, so 2 processes"):
        bench.step(1)
    with torch.no_grad():
        online(online.word_embeddings(torch.tensor([5])), torch.tensor([0]), torch.tensor([0, 1]))
