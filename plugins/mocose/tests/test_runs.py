"""Whole runs: resumed bit for bit, over other recipes, collapsing."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from cse_testkit import (
    compose,
    installed_registry,
    run_steps,
    shared_encoder,
    tiny_corpus,
    write_corpus,
)
from transformers import AutoModel

from cse_cli.models.saved_model import load
from cse_cli.training.collapse import attach_callbacks
from cse_core.recipes.composition import Composition
from cse_core.runtime.reporter import Reporter
from cse_core.training.checkpoint import Checkpoint
from cse_core.training.run import resume, train
from cse_core.training.signals import Stopped

QUEUE = ["negatives.queue.size=10", "negatives.queue.first_fill=3"]


class Stopping(Reporter):
    """Asks the run to stop after a step."""

    def __init__(self, after: int) -> None:
        self.after = after

    def step(self, done: int) -> None:
        if done == self.after:
            signal.raise_signal(signal.SIGTERM)


def composed(
    folder: Path, *sets: str, kinds: Any = None, encoder: Path | None = None
) -> Composition:
    corpus = tiny_corpus(30)
    file = write_corpus(corpus, folder / "rows.csv")
    return compose(
        recipe=None if kinds else "mocose",
        kinds=kinds,
        corpus=corpus,
        encoder=encoder,
        sets=[
            f"data.path=[{file}]",
            "train.dev=[none]",
            "train.device=cpu",
            "train.max_steps=12",
            "train.log_steps=4",
            *QUEUE,
            *sets,
        ],
    )


def last(run: Path) -> Checkpoint:
    return Checkpoint.read(max((run / "checkpoints").glob("step-*"), key=_number))


def _number(path: Path) -> int:
    return int(path.name.rpartition("-")[2])


@pytest.mark.parametrize(
    "sets",
    [
        [],
        ["negatives.queue.growth=official", "aug.fgsm.gradient=previous"],
        ["negatives.queue.update=latest", "train.chunk_size=3"],
        ["negatives.queue.update=oldest", "branch.target.mode=eval"],
    ],
    ids=["paper", "official", "latest", "oldest"],
)
@pytest.mark.parametrize("stop", [2, 7])
def test_a_killed_run_goes_on_as_if_nothing_had_happened(
    stop: int, sets: list[str], tmp_path: Path
) -> None:
    """Queue, ages, rows, counters, branch, optimiser, gradients and weights: bit for bit."""
    composition, registry = composed(tmp_path, *sets), installed_registry()
    train(composition, registry, out=tmp_path / "whole", reporter=Reporter())
    with pytest.raises(Stopped):
        train(composition, registry, out=tmp_path / "halted", reporter=Stopping(stop))
    assert last(tmp_path / "halted").values["step"] == stop
    resume(tmp_path / "halted", registry, reporter=Reporter())
    one, other = (last(tmp_path / name) for name in ("whole", "halted"))
    assert one.values["step"] == other.values["step"] == 12
    assert one.tensors.keys() == other.tensors.keys()
    for name, value in one.tensors.items():
        assert torch.equal(value, other.tensors[name]), name
    assert one.values["parts"] == other.values["parts"]
    names = [f"part.negatives.queue.{each}" for each in ("vectors", "row", "age")]
    assert all(name in one.tensors for name in names)
    assert any(name.startswith("part.branch.target.") for name in one.tensors)
    decays = [
        [line.get("target.decay") for line in lines(tmp_path / each)]
        for each in ("whole", "halted")
    ]
    assert decays[0] == decays[1] and decays[0][-1] == 1.0


def lines(run: Path) -> list[dict[str, Any]]:
    text = (run / "metrics.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_the_saved_model_has_no_heads(tmp_path: Path) -> None:
    out = tmp_path / "run"
    registry = installed_registry()
    train(composed(tmp_path), registry, out=out, reporter=Reporter())
    manifest = json.loads((out / "model" / "cse.json").read_text(encoding="utf-8"))
    assert manifest["heads"] == []
    assert load(str(out), registry).encode(["Anna paints the boat."]).shape == (1, 32)


def test_queue_and_fgsm_over_the_default_recipe(tmp_path: Path) -> None:
    """The composer adds the branch; the loss sees the batch and the queue."""
    kinds = {"aug": ["fgsm"], "negatives": ["queue"]}
    made = composed(tmp_path, kinds=kinds)
    assert [part.name for part in made.of("branch")] == ["online", "ema"]
    train(made, installed_registry(), out=tmp_path / "run", reporter=Reporter())
    seen = [line["infonce.negatives"] for line in lines(tmp_path / "run")]
    # Four rows a batch: three others and ten keys; a text that comes twice is masked.
    assert 12.0 < seen[-1] <= 13.0
    assert lines(tmp_path / "run")[-1]["fgsm.positive.size"] == pytest.approx(0.05, rel=0.01)


def test_in_batch_keys_are_negatives_or_not() -> None:
    """The code and the recipe have the batch's keys too, Eq. 3 the queue's alone."""
    sets = [*QUEUE, "train.batch_size=3"]
    paper = run_steps(recipe="mocose", sets=[*sets, "loss.infonce.negatives=stored"], steps=1)
    code = run_steps(recipe="mocose", sets=sets, steps=1)
    assert paper.scalars[0]["infonce.negatives"] == 3.0
    assert code.scalars[0]["infonce.negatives"] == 5.0
    assert code.losses[0] > paper.losses[0]


@pytest.mark.parametrize("predictor", [False, True])
def test_a_decay_of_zero_is_the_current_online_encoder(predictor: bool) -> None:
    """A.1: with decay 0 the target that encodes is the online encoder as it is."""
    kinds: Any = {} if predictor else {"pool": ["~predictor"]}
    run = run_steps(kinds, ["branch.target.decay=0", *QUEUE], recipe="mocose", steps=3)
    tensors, _ = run.state()
    for name, value in run.weights().items():
        if name.startswith("encoder.") and "word_embeddings" not in name:
            kept = tensors[f"part.branch.target.0.{name.removeprefix('encoder.')}"]
            assert torch.allclose(kept, value), name
    assert any("traceable distance" in warning for warning in run.composition.warnings)


class Listening(Reporter):
    """Keeps the warnings."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warning(self, text: str) -> None:
        self.warnings.append(text)


@pytest.mark.parametrize("collapsed", [False, True])
def test_a_made_collapse_is_noticed(collapsed: bool, tmp_path: Path) -> None:
    """Score, effective rank and mean cosine of an encoder that gives one vector to all texts."""
    folder = tmp_path / "encoder"
    shutil.copytree(shared_encoder(), folder)
    if collapsed:
        model = AutoModel.from_pretrained(folder)
        for parameter in model.parameters():
            parameter.data.zero_()
        model.encoder.layer[-1].output.LayerNorm.bias.data.fill_(1.0)
        model.save_pretrained(folder)
    texts = tiny_corpus(30).column("text")
    pairs = [f"{texts[i]}\t{texts[i + 1]}\t{i % 6}" for i in range(20)]
    dev = tmp_path / "pairs.tsv"
    dev.write_text("\n".join(["sentence1\tsentence2\tscore", *pairs]) + "\n", encoding="utf-8")
    sets = [f"train.dev=[{dev}]", "train.max_steps=1", "train.lr=0"]
    made = composed(tmp_path, *sets, encoder=folder)
    reporter = Listening()
    train(
        made,
        installed_registry(),
        out=tmp_path / "run",
        reporter=reporter,
        attach_callbacks=attach_callbacks,
    )
    line = lines(tmp_path / "run")[-1]
    assert "pairs.spearman" in line
    assert (line["pairs.mean_cosine"] > 0.999) == collapsed
    assert (line["pairs.effective_rank"] < 1.01) == collapsed
    # A random encoder is near it: its vectors differ by little, and may be warned of too.
    assert not collapsed or any("collapse" in text for text in reporter.warnings)
