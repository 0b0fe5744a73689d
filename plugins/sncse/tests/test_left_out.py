"""Sentences without a soft negative: views without their rows, batches that have none at all."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from cse_sncse.rules import negate
from cse_testkit import (
    compose,
    installed_registry,
    make_context,
    make_part,
    run_steps,
    shared_encoder,
)

from cse_core.data import Corpus
from cse_core.runtime.reporter import Reporter
from cse_core.training.run import train
from cse_core.types import View
from tests.fixtures.ranks import two_ranks

SCRIPT = Path(__file__).with_name("steps_left_out.py")
TEXTS = ["Anna paints the boat.", "...", "How to paint a boat?", "It isn't cold"]


def script() -> Any:
    spec = importlib.util.spec_from_file_location("steps_left_out", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_view_holds_the_rows_that_can_be_negated() -> None:
    assert [negate(text) is None for text in TEXTS] == [False, True, True, False]
    part = make_part("aug", "negation")
    (view,) = part.views(torch.arange(4), make_context(texts={"text": TEXTS}))
    assert view.texts == [TEXTS[0], TEXTS[3]]
    assert view.owner.tolist() == [0, 3]
    negated = part(view.texts, None, view, make_context(texts={"text": TEXTS}))
    assert negated == ["Anna does not paint the boat.", "It is cold"]


def test_in_another_view_it_stays() -> None:
    part = make_part("aug", "negation", views=["positive"])
    view = View("positive", "positive", "online")
    negated = part(TEXTS, None, view, make_context(texts={"text": TEXTS}))
    assert negated == ["Anna does not paint the boat.", *TEXTS[1:3], "It is cold"]
    assert part.views(torch.arange(4), make_context(texts={"text": TEXTS})) == []


def test_a_batch_without_soft_negatives_has_the_other_losses_alone() -> None:
    found = script()
    unsure = [found.UNSURE.format(row) for row in range(24)]
    corpus = Corpus.from_columns({"text": unsure})
    run = run_steps(recipe="sncse", sets=["model.max_length=64"], corpus=corpus)
    alone = run_steps(
        recipe="sncse",
        kinds={"aug": ["~negation"], "loss": ["infonce"]},
        sets=["model.max_length=64"],
        corpus=corpus,
    )
    assert run.losses == alone.losses
    assert [step["bml.soft_negatives"] for step in run.scalars] == [0, 0, 0]
    for name, value in alone.weights.items():
        assert torch.equal(run.weights[name], value), name


@pytest.mark.parametrize("recipe", ["sncse", "hicl-sncse"])
def test_chunks_give_the_same(recipe: str) -> None:
    """Batches of 8 without any, 5 with one, 1 without and 8 with four."""
    if recipe not in {each.name for each in installed_registry().recipes()}:
        pytest.skip("cse-hicl is not installed")
    run = script().run
    whole = run(shared_encoder(), recipe, "train.chunk_size=none")
    chunked = run(shared_encoder(), recipe, "train.chunk_size=3")
    assert chunked["losses"] == pytest.approx(whole["losses"], rel=1e-3, abs=1e-5)
    shares = [parts["bml.soft_negatives"] for parts in whole["parts"]]
    assert shares == pytest.approx([0, 0.2, 0, 0.5])
    assert shares == [parts["bml.soft_negatives"] for parts in chunked["parts"]]
    assert [parts["bml.loss"] for parts in whole["parts"]][::2] == [0, 0]


@pytest.mark.slow
def test_two_processes_equal_one(tmp_path: Path) -> None:
    recipe = "hicl-sncse"
    if recipe not in {each.name for each in installed_registry().recipes()}:
        pytest.skip("cse-hicl is not installed")
    root = SCRIPT.parents[3]
    command = [sys.executable, str(SCRIPT), str(tmp_path), str(shared_encoder()), recipe]
    running = [
        subprocess.Popen(
            command, env={**os.environ, **rank, "PYTHONPATH": str(root)}, stderr=subprocess.PIPE
        )
        for rank in two_ranks()
    ]
    try:
        for process in running:
            _, errors = process.communicate(timeout=240)
            assert process.returncode == 0, errors.decode()[-2000:]
    finally:
        for process in running:
            process.kill()
    one = script().run(shared_encoder(), recipe)
    for rank in range(2):
        found = json.loads((tmp_path / f"{rank}.json").read_text())
        assert found["losses"] == pytest.approx(one["losses"], rel=1e-3, abs=1e-5)
        for mine, theirs in zip(found["parts"], one["parts"], strict=True):
            assert mine["bml.soft_negatives"] == pytest.approx(theirs["bml.soft_negatives"])


def test_the_share_is_in_metrics(tmp_path: Path) -> None:
    composition = compose(
        recipe="sncse",
        sets=["train.batch_size=13", "train.log_steps=1", "train.dev=[none]", "train.device=cpu"],
        corpus=(corpus := script().mixed()),
    )
    train(composition, installed_registry(), out=tmp_path, reporter=Reporter(), corpus=corpus)
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    shares = [line["bml.soft_negatives"] for line in lines if "bml.soft_negatives" in line]
    assert sum(shares) / len(shares) == pytest.approx(9 / 26)
