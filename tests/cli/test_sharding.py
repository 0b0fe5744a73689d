"""``train.shard``: two processes with parts of the encoder equal two with all of it, and one."""

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
from cse_testkit import installed_registry
from cse_testkit.recipes import ENCODERS
from safetensors.torch import load_file
from torch import Tensor
from transformers import AlbertConfig, AlbertModel, AutoTokenizer

import cse
from cse_cli.training.sharding import check_sharding
from cse_core.errors import CseError
from cse_core.recipes.compose import resolve
from tests.fixtures.ranks import ranks
from tests.fixtures.sharding import begun, last, stepped, stopped
from tests.fixtures.shared_steps import BATCHES, SEGMENTS
from tests.fixtures.tiny import make_encoder, sentences

ROOT = Path(__file__).parents[2]
SIMCSE = """
[[pool]]
use = "cls"
[[pool]]
use = "mlp"
[[loss]]
use = "infonce"
"""
MEAN = """
[[pool]]
use = "mean"
[[loss]]
use = "infonce"
"""
SIBLINGS = """
[[pool]]
use = "cls"
[[pool]]
use = "mlp"
[[branch]]
use = "online"
name = "calm"
mode = "eval"
[views.positive]
branch = "calm"
[[loss]]
use = "infonce"
"""
SETS = ["model.dropout=0", "train.lr=1e-4", "train.clip=1"]
CASES: dict[str, tuple[str, list[str]]] = {
    "cls": (SIMCSE, []),
    "cls in chunks": (SIMCSE, ["train.chunk_size=2"]),
    "mean in bf16": (MEAN, ["train.precision=bf16"]),
    "mean in chunks of bf16, computed again": (
        MEAN,
        ["train.precision=bf16", "train.chunk_size=2", "model.gradient_checkpointing=true"],
    ),
    "padded, without embeddings": (
        SIMCSE,
        ["model.attention=padded", "model.freeze_embeddings=true"],
    ),
    "two branches of the encoder": (SIBLINGS, []),
    "layers used several times, in chunks": (MEAN, ["train.chunk_size=2"]),
    "gradients of inputs in chunks": (SEGMENTS, ["train.chunk_size=2"]),
}
STOP = 3


def make_albert(folder: Path) -> str:
    """Save a random ALBERT of two layers with the weights of one, after an encoder of BERT's."""
    torch.manual_seed(1)
    config = AlbertConfig(
        vocab_size=65, embedding_size=16, hidden_size=32, num_hidden_layers=2,
        num_attention_heads=4, intermediate_size=64, max_position_embeddings=48,
        initializer_range=0.1,
    )  # fmt: skip
    AlbertModel(config, add_pooling_layer=False).save_pretrained(folder / "albert")
    AutoTokenizer.from_pretrained(folder / "encoder").save_pretrained(folder / "albert")
    return str(folder / "albert")


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Train each case in two processes, and runs: all of one, half, and the other half of one."""
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("sharding")
    found: dict[str, Any] = {
        "encoder": make_encoder(folder / "encoder"), "folder": str(folder), "recipe": SIMCSE,
        "columns": {"text": sentences(30)}, "batches": BATCHES,
        "sets": [*SETS, "train.batch_size=5", "train.eval_steps=2", "train.max_steps=6"],
        "cases": [
            {"name": name, "recipe": recipe, "sets": [*SETS, *sets], **(
                {"encoder": make_albert(folder)} if name.startswith("layers") else {}
            )}
            for name, (recipe, sets) in CASES.items()
        ],
        "runs": {"whole": 0, "stopped": STOP, "one": "resume"},
    }  # fmt: skip
    stopped(begun(found, folder / "one"), STOP)
    (folder / "job.json").write_text(json.dumps(found))
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.fixtures.sharding", str(folder / "job.json")], cwd=ROOT,
            env={**os.environ, **rank, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for rank in ranks(2)
    ]  # fmt: skip
    try:
        said = [each.communicate(timeout=600)[0] for each in running]
    finally:
        for each in running:
            each.kill()
    assert [each.returncode for each in running] == [0, 0], "\n".join(s[-3000:] for s in said)
    return found


def close(found: dict[str, Tensor], expected: dict[str, Tensor], most: float = 1e-4) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        if not name.endswith("key.bias"):  # a softmax does not feel it: its gradient is rounding
            difference = (found[name] - value).norm() / value.norm().clamp_min(0.1)
            assert difference < most, (name, float(difference))


@pytest.mark.parametrize("name", CASES)
def test_two_processes_with_parts_equal_two_with_all_and_one(
    name: str, job: dict[str, Any], tmp_path: Path
) -> None:
    folder = Path(job["folder"]) / name
    case = next(each for each in job["cases"] if each["name"] == name)
    expected, one = stepped({**job, **case}, tmp_path)
    read = {
        (how, rank): json.loads((folder / f"{how}-{rank}" / "numbers.json").read_text())
        for how in ("none", "full")
        for rank in (0, 1)
    }
    full, buckets = read["full", 0], read["none", 0]
    assert full["losses"] == read["full", 1]["losses"]
    half = "bf16" in name  # sums of other shares, rounded to it, differ from those of one process
    for key in ("losses", "norms"):
        np.testing.assert_allclose(full[key], buckets[key], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(full[key], one[key], rtol=2e-2 if half else 1e-4, atol=1e-5)
    found = load_file(folder / "full-0" / "weights")
    close(found, load_file(folder / "none-0" / "weights"))
    close(found, expected, 1e-2 if half else 1e-4)
    for key in ("weights", "moments"):
        whole = one[key][1]
        parts = [read["full", rank][key][0] for rank in (0, 1)]
        assert [read["none", rank][key][0] for rank in (0, 1)] == [whole, whole]
        # AdamW counts the steps of each tensor; odd rows go to the first process.
        steps = 4 * len(found) if key == "moments" else 0
        assert sum(parts) <= whole + steps and max(parts) <= 0.51 * whole + steps, parts


@pytest.mark.parametrize("name, chunks", [("cls", 1), ("cls in chunks", 2)])
def test_what_a_step_says(name: str, chunks: int, job: dict[str, Any]) -> None:
    """Weights go out once for each pass that reads them, their gradients once for each chunk."""
    numbers = json.loads((Path(job["folder"]) / name / "full-0" / "numbers.json").read_text())
    said, half, groups = numbers["said"][0], numbers["weights"][0], 4  # table, two layers, the rest
    gathers = [given for call, given in said if call.startswith("all_gather")]
    sums = [given for call, given in said if call.startswith("reduce_scatter")]
    forward = 1 if chunks == 1 else 2 * chunks  # with chunks all are encoded once more before
    assert len(gathers) == groups * forward + (groups - 1) * chunks + 1  # vectors
    assert len(sums) == groups * chunks
    # Of weights a process gives its part, of gradients all. A table's gradient needs no table.
    table, vectors = 33 * 32 * 4, 2 * 4 * (4 * 32 + 8)
    assert sum(gathers) == half * (forward + chunks) - table * chunks + vectors
    assert sum(sums) == 2 * half * chunks
    # The head's gradient and whether there was any, and the square of the norm of parts.
    assert [given for call, given in said if call == "all_reduce"] == [4 * 33 * 32, 2, 4]
    assert len(said) == len(gathers) + len(sums) + 3, "nothing else is said"


def test_a_run_goes_on_with_more_processes_or_fewer(job: dict[str, Any], tmp_path: Path) -> None:
    whole = begun(job, tmp_path / "whole")
    outcome = whole.run()
    expected = last(whole)
    folder = Path(job["folder"])
    fewer = begun(job, folder / "stopped", "train.shard=full")
    came = last(fewer)
    assert came.values["step"] == STOP
    assert {n: v.shape for n, v in came.tensors.items()} == {
        n: v.shape for n, v in expected.tensors.items()
    }
    fewer.run(came)
    for name in ("whole", "stopped", "one"):
        run = begun(job, folder / name)
        found = last(run)
        assert found.values["step"] == 6
        close(found.tensors, expected.tensors, 1e-3)
        result = json.loads((run.folder.path / "result.json").read_text())
        assert result["score"] == pytest.approx(outcome.score, abs=1e-6)
        texts = job["columns"]["text"]
        vectors = [cse.load(made.folder.model).encode(texts) for made in (run, whole)]
        np.testing.assert_allclose(*vectors, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "sets, kinds, what",
    [
        (["train.precision=fp16"], {}, "--train.precision bf16"),
        ([], {"branch": ["ema"], "negatives": ["queue"]}, "--branch ~ema"),
        ([], {"adapter": ["lora"]}, "--adapter ~lora"),
    ],
)
def test_the_plan_refuses_what_does_not_work(sets: list[str], kinds: Any, what: str) -> None:
    facts = ENCODERS["bert-base"]

    def planned(shard: str) -> None:
        check_sharding(
            resolve(
                installed_registry(), recipe="simcse", model=facts.model, facts=facts,
                kinds=kinds, sets=[*sets, f"train.shard={shard}"],
            )
        )  # fmt: skip

    planned("none")
    with pytest.raises(CseError, match="--train.shard") as error:
        planned("full")
    assert what in error.value.line()
