"""Two processes against one: the same losses and weights without dropout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from cse_core.engine import objective
from cse_core.errors import CseError
from cse_core.runtime import distributed, gradients
from cse_core.types import LossOutput
from tests.fixtures.process import steps, whole
from tests.fixtures.ranks import ranks
from tests.fixtures.shared_steps import BATCHES, SEGMENTS
from tests.fixtures.tiny import Bench, sentences

ROOT = Path(__file__).parents[3]
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


def in_two(job: dict[str, Any], folder: Path) -> list[tuple[dict[str, Tensor], list[float]]]:
    return in_many(job, folder, 2)


def in_many(
    job: dict[str, Any], folder: Path, size: int
) -> list[tuple[dict[str, Tensor], list[float]]]:
    path = folder / "job.json"
    path.write_text(json.dumps({**job, "folder": str(folder)}))
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.fixtures.process", str(path)], cwd=ROOT,
            env={**os.environ, **rank, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for rank in ranks(size)
    ]  # fmt: skip
    try:
        said = [each.communicate(timeout=60 * size)[0] for each in running]
    finally:
        for each in running:
            each.kill()
    assert [each.returncode for each in running] == [0] * size, "\n".join(s[-3000:] for s in said)
    return [
        (
            load_file(folder / f"rank-{rank}" / "weights.safetensors"),
            json.loads((folder / f"rank-{rank}" / "numbers.json").read_text()),
        )
        for rank in range(size)
    ]


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
def test_two_processes_equal_one(recipe: str, chunk: str, encoder: str, folder: Path) -> None:
    job = {
        "encoder": encoder, "recipe": recipe, "columns": {"text": sentences(24)},
        "sets": ["model.dropout=0", "train.lr=1e-4", f"train.chunk_size={chunk}"],
        "batches": BATCHES,
    }  # fmt: skip
    expected, losses = steps(job, folder)
    for found, numbers in in_two(job, folder):
        np.testing.assert_allclose(numbers, losses, rtol=1e-4, atol=1e-5)
        close(found, expected)


def rows_of(size: int, count: int) -> int:
    """Return the rows of the process that has most."""
    return -(-count // size)


@pytest.mark.parametrize(
    "recipe, chunk, size",
    [
        (PLAIN, "none", 2),
        pytest.param(PLAIN, "2", 4, marks=pytest.mark.slow),
        pytest.param(SEGMENTS, "3", 4, marks=pytest.mark.slow),
    ],
    ids=["plain", "plain in chunks", "segments in chunks"],
)
def test_what_a_step_says(recipe: str, chunk: str, size: int, encoder: str, folder: Path) -> None:
    """Calls and bytes are those that the algorithm needs, and gradients go out during backward."""
    job = {
        "encoder": encoder, "recipe": recipe, "columns": {"text": sentences(24)},
        "sets": ["model.dropout=0", "train.lr=1e-4", f"train.chunk_size={chunk}"],
        "batches": BATCHES, "bucket": 20_000,
    }  # fmt: skip
    plain = {key: value for key, value in job.items() if key != "bucket"}
    expected, losses = steps(plain, folder)
    for found, numbers in in_many(job, folder, size):
        np.testing.assert_allclose(numbers, losses, rtol=1e-4, atol=1e-5)
        close(found, {name: expected[name] for name in found})
    for rank in range(size):
        about = json.loads((folder / f"rank-{rank}" / "said.json").read_text())
        for batch, said in zip(BATCHES, about["said"], strict=True):
            calls = [(name, given) for name, given, _ in said if name != "backward"]
            sums = [given for name, given in calls if name == "all_reduce"]
            gathers = [given for name, given in calls if name in GATHERS]
            assert len(sums) + len(gathers) == len(calls), "nothing else is said"
            # One small message, of a byte for each weight: whether any process had a gradient.
            flags = len(about["trained"])
            assert calls[-1 if recipe == PLAIN else -3] == ("all_reduce", flags)
            if recipe == PLAIN:
                # Two views, and one that the queue's branch encodes, with a number for each row.
                row = 3 * (4 * 32 + 8)
                assert gathers == [rows_of(size, len(batch)) * row]
                assert sum(sums) == sum(about["trained"]) + flags
                buckets = len(sums) - 1
                most = sum(about["trained"]) / 20_000 + len(
                    [each for each in about["trained"] if each >= 20_000]
                )
                assert 3 <= buckets <= most + 2
            else:
                # Vectors of the pass for inputs' gradients and of the other, and these gradients.
                assert len(gathers) <= 4
            during = [given for name, given, inside in said if name == "all_reduce" and inside]
            ends = [place for place, event in enumerate(said) if event[0] == "backward"]
            begins = [place for place, event in enumerate(said) if event[0] == "all_reduce"]
            if begins and ends and len(batch) >= 2 * size and recipe == PLAIN:
                assert len(during) >= 2, "sums begin while a backward pass runs"
            if len(ends) > 1 and recipe == PLAIN:
                assert min(begins) > ends[-2], "and only in the last one"


@pytest.mark.slow
def test_two_processes_skip_the_same_steps_of_fp16(encoder: str, folder: Path) -> None:
    """An overflow in either is one of both: what is looked at is the sum of their gradients."""
    job = {
        "encoder": encoder, "recipe": PLAIN, "columns": {"text": sentences(24)},
        "sets": ["model.dropout=0", "train.lr=1e-3", "train.precision=fp16",
                 "loss.infonce.weight=30"],
        "batches": [list(range(8))] * 12,
    }  # fmt: skip
    (one, losses), (other, numbers) = in_two(job, folder)
    assert losses == numbers and all(torch.equal(value, other[name]) for name, value in one.items())
    assert losses[0] == losses[1], "the first steps move no weight"
    assert losses[-1] != losses[0], "the last ones do"


def test_two_processes_train_a_run_and_choose_the_same_checkpoint(
    encoder: str, folder: Path
) -> None:
    job = {
        "encoder": encoder, "recipe": PLAIN, "columns": {"text": sentences(17)},
        "sets": ["model.dropout=0", "train.lr=1e-4", "train.eval_steps=1"],
    }  # fmt: skip
    (folder / "one").mkdir()
    expected, numbers = whole({**job, "out": str(folder / "one" / "run")}, folder / "one")
    for found, scores in in_two({**job, "out": str(folder / "two")}, folder):
        np.testing.assert_allclose(scores, numbers, atol=1e-6)
        close(found, expected)
    assert (folder / "two" / "model" / "modules.json").is_file()


@pytest.mark.slow
def test_equal_sentences_of_two_processes_are_no_negatives_and_counted_once(
    encoder: str, folder: Path
) -> None:
    """In the batch, whose halves two processes encode, and in the queue; case and spacing count."""
    texts = sentences(12)
    texts[7], texts[10], texts[11] = texts[0], texts[1].upper(), f"{texts[2]} ".replace(" ", "  ")
    for how in ("keep", "mask"):
        (folder / how).mkdir()
        job = {
            "encoder": encoder, "recipe": PLAIN, "columns": {"text": texts},
            "sets": [
                "model.dropout=0", "train.lr=1e-4", "train.batch_size=12", "train.max_steps=3",
                f"loss.infonce.same_text={how}",
            ],
        }  # fmt: skip
        (folder / how / "one").mkdir()
        whole({**job, "out": str(folder / how / "one" / "run")}, folder / how / "one")
        in_two({**job, "out": str(folder / how / "two")}, folder / how)
        one, two = (
            [json.loads(line) for line in path.read_text().splitlines()]
            for path in (folder / how / name / "metrics.jsonl" for name in ("one/run", "two"))
        )
        keys = [key for key in one[-1] if key.startswith(("infonce.negatives", "infonce.same"))]
        assert len(keys) == 7 and "infonce.negatives.queue.age" in keys
        assert [[line.get(k) for k in keys] for line in one] == [
            [line.get(k) for k in keys] for line in two
        ]
        # Each of a pair meets the other in the batch, and both in the queue, which holds one step.
        pairs = int(how == "mask")
        queued = (12 + 2 * pairs) * (how != "keep")
        expected = [2 * pairs, 2 * pairs + queued, 2 * pairs + queued]
        assert [line["infonce.same_text.masked"] for line in one] == expected
        left = 11 - 2 * pairs / 12
        assert one[0]["infonce.negatives.in-batch"] == pytest.approx(left)
        seen = [line["infonce.same_text.seen"] for line in one]
        assert seen == ([2, 2 + 14, 2 + 14] if how == "keep" else [0, 0, 0])


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
    gradients.GradientSum([], [used, unused, used]).finish()
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
