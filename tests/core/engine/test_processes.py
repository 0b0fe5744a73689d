"""Two processes against one: the same losses and weights without dropout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from cse_core.engine import objective
from cse_core.errors import CseError
from cse_core.runtime import distributed, gradients
from cse_core.types import LossOutput
from tests.fixtures.communication import Event
from tests.fixtures.process import steps, whole
from tests.fixtures.processes import TwoProcesses
from tests.fixtures.shared_steps import BATCHES, SEGMENTS
from tests.fixtures.tiny import Bench, sentences

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


def close(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        if name.endswith("key.bias"):
            continue  # a softmax does not feel it: its gradient is rounding, which Adam scales up
        if value.is_floating_point():
            difference = (found[name] - value).norm() / value.norm().clamp_min(0.1)
            assert difference < 1e-4, (name, float(difference))
        else:
            assert torch.equal(found[name], value), name


@pytest.mark.parametrize(
    "recipe, chunk", [(PLAIN, "none"), (SEGMENTS, "3")], ids=["plain", "segments"]
)
def test_two_processes_equal_one(
    recipe: str, chunk: str, encoder: str, folder: Path, two_processes: TwoProcesses
) -> None:
    job = {
        "encoder": encoder, "recipe": recipe, "columns": {"text": sentences(24)},
        "sets": ["model.dropout=0", "train.lr=1e-4", f"train.chunk_size={chunk}"],
        "batches": BATCHES,
    }  # fmt: skip
    expected, losses = steps(job, folder)
    for found, numbers in two_processes(SHARED, "steps", job, str(folder)):
        np.testing.assert_allclose(numbers, losses, rtol=1e-4, atol=1e-5)
        close(found, expected)


def test_what_a_step_says(encoder: str, folder: Path, two_processes: TwoProcesses) -> None:
    """Calls and bytes are those that the algorithm needs, and gradients go out during backward."""
    for recipe, chunk in ((PLAIN, "none"), (PLAIN, "2"), (SEGMENTS, "3")):
        job = {
            "encoder": encoder, "recipe": recipe, "columns": {"text": sentences(24)},
            "sets": ["model.dropout=0", "train.lr=1e-4", f"train.chunk_size={chunk}"],
            "batches": BATCHES, "bucket": 20_000,
        }  # fmt: skip
        expected, losses = steps(job, folder)
        for (found, numbers), said, trained in two_processes(SHARED, "watched", job, str(folder)):
            np.testing.assert_allclose(numbers, losses, rtol=1e-4, atol=1e-5)
            close(found, expected)
            for batch, events in zip(BATCHES, said, strict=True):
                check_step(recipe == PLAIN, len(batch), events, trained)


def check_step(plain: bool, rows: int, said: list[Event], trained: list[int]) -> None:
    """Check what a process says in a step of so many rows; weights have ``trained`` bytes."""
    calls = [(name, given) for name, given, _ in said if name != "backward"]
    sums = [given for name, given in calls if name == "all_reduce"]
    gathers = [given for name, given in calls if name in GATHERS]
    assert len(sums) + len(gathers) == len(calls), "nothing else is said"
    # One small message, of a byte for each weight: whether any process had a gradient.
    flags = len(trained)
    assert calls[-1 if plain else -3] == ("all_reduce", flags)
    if not plain:
        # Vectors of the pass for inputs' gradients and of the other, and these gradients.
        assert len(gathers) <= 4
        return
    # Two views, and one that the queue's branch encodes, with a number for each row.
    assert gathers == [-(-rows // 2) * 3 * (4 * 32 + 8)]
    assert sum(sums) == sum(trained) + flags
    most = sum(trained) / 20_000 + len([each for each in trained if each >= 20_000])
    assert 3 <= len(sums) - 1 <= most + 2
    during = [given for name, given, inside in said if name == "all_reduce" and inside]
    ends = [place for place, event in enumerate(said) if event[0] == "backward"]
    begins = [place for place, event in enumerate(said) if event[0] == "all_reduce"]
    if begins and ends and rows == 8:  # each process has rows in its last chunk
        assert len(during) >= 2, "sums begin while a backward pass runs"
    if len(ends) > 1:
        assert min(begins) > ends[-2], "and only in the last one"


def test_two_processes_skip_the_same_steps_of_fp16(
    encoder: str, folder: Path, two_processes: TwoProcesses
) -> None:
    """An overflow in either is one of both: what is looked at is the sum of their gradients."""
    job = {
        "encoder": encoder, "recipe": PLAIN, "columns": {"text": sentences(24)},
        "sets": ["model.dropout=0", "train.lr=1e-3", "train.precision=fp16",
                 "loss.infonce.weight=30"],
        "batches": [list(range(8))] * 12,
    }  # fmt: skip
    (one, losses), (other, numbers) = two_processes(SHARED, "steps", job, str(folder))
    assert losses == numbers and all(torch.equal(value, other[name]) for name, value in one.items())
    assert losses[0] == losses[1], "the first steps move no weight"
    assert losses[-1] != losses[0], "the last ones do"


def test_two_processes_train_a_run_and_choose_the_same_checkpoint(
    encoder: str, folder: Path, two_processes: TwoProcesses
) -> None:
    job = {
        "encoder": encoder, "recipe": PLAIN, "columns": {"text": sentences(17)},
        "sets": ["model.dropout=0", "train.lr=1e-4", "train.eval_steps=1"],
    }  # fmt: skip
    (folder / "one").mkdir()
    expected, numbers = whole({**job, "out": str(folder / "one" / "run")}, folder / "one")
    two = {**job, "out": str(folder / "two")}
    for found, scores in two_processes(SHARED, "whole", two, str(folder)):
        np.testing.assert_allclose(scores, numbers, atol=1e-6)
        close(found, expected)
    assert (folder / "two" / "model" / "modules.json").is_file()


def test_equal_sentences_of_two_processes_are_no_negatives_and_counted_once(
    encoder: str, folder: Path, two_processes: TwoProcesses
) -> None:
    """In the batch, whose halves two processes encode, and in the queue."""
    texts = sentences(12)
    texts[7], texts[10] = texts[0], texts[1]
    for how in ("keep", "mask"):
        (folder / how / "one").mkdir(parents=True)
        job = {
            "encoder": encoder, "recipe": PLAIN, "columns": {"text": texts},
            "sets": [
                "model.dropout=0", "train.lr=1e-4", "train.batch_size=12", "train.max_steps=3",
                f"loss.infonce.same_text={how}",
            ],
        }  # fmt: skip
        whole({**job, "out": str(folder / how / "one" / "run")}, folder / how / "one")
        two_processes(SHARED, "whole", {**job, "out": str(folder / how / "two")}, str(folder / how))
        one, two = (
            [json.loads(line) for line in path.read_text().splitlines()]
            for path in (folder / how / name / "metrics.jsonl" for name in ("one/run", "two"))
        )
        keys = [key for key in one[-1] if key.startswith(("infonce.negatives", "infonce.same"))]
        assert len(keys) == 7 and "infonce.negatives.queue.age" in keys
        assert [[line.get(k) for k in keys] for line in one] == [
            [line.get(k) for k in keys] for line in two
        ]
        # Each of two pairs meets the other in the batch, and both in the queue, which holds a step.
        pairs = [4, 4 + 16, 4 + 16]
        masked, seen = (
            [line[f"infonce.same_text.{n}"] for line in one] for n in ("masked", "seen")
        )
        assert (masked, seen) == ((pairs, [0] * 3) if how == "mask" else ([0] * 3, pairs))
        left = 11 - (4 / 12) * (how == "mask")
        assert one[0]["infonce.negatives.in-batch"] == pytest.approx(left)


def test_what_no_process_used_has_no_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the optimiser would decay it, as it does not in one process."""

    class Done:
        def wait(self) -> None:
            pass

    def twice(values: Tensor, how: object = None, group: object = None, **_: object) -> Done:
        values.mul_(2)
        return Done()

    for module in (distributed, gradients):
        monkeypatch.setattr(module, "rank_and_size", lambda: (0, 2))
    monkeypatch.setattr(distributed, "_on_cpu", lambda: None)
    monkeypatch.setattr(distributed.dist, "all_reduce", twice)
    used, unused = (torch.nn.Parameter(torch.ones(3)) for _ in range(2))
    used.grad = torch.full((3,), 4.0)
    gradients.GradientReducer([], [used, unused, used]).finish()
    assert torch.equal(used.grad, torch.full((3,), 4.0))
    assert unused.grad is None


def test_a_loss_that_encodes_by_itself_trains_in_one_process_alone(
    encoder: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(encoder, folder, '[[pool]]\nuse = "cls"\n[[loss]]\nuse = "infonce"\n')
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
