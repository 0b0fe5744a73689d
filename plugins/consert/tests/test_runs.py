"""The recipe at work: views that differ by its augmenters alone, and a model that has none."""

from __future__ import annotations

from pathlib import Path

import torch
from cse_testkit import compose, installed_registry, run_steps, tiny_corpus, write_corpus

from cse_cli.models.saved_model import load
from cse_core.runtime.reporter import Reporter
from cse_core.training.run import train


def test_from_a_file_to_a_model(tmp_path: Path) -> None:
    corpus = tiny_corpus()
    file = write_corpus(corpus, tmp_path / "rows.csv")
    sets = [f"data.path=[{file}]", "train.max_steps=3", "train.device=cpu"]
    composition = compose(recipe="consert", corpus=corpus, sets=sets)
    train(composition, installed_registry(), out=tmp_path / "run", reporter=Reporter())
    model = load(str(tmp_path / "run"), installed_registry())
    plain = "Anna paints the boat."
    one, other = (torch.as_tensor(model.encode([text])) for text in (plain, plain))
    assert torch.equal(one, other), "nothing is cut or shuffled when texts are encoded"


def test_without_dropout_the_augmenters_alone_make_the_views() -> None:
    both = run_steps(recipe="consert", steps=1)
    none = run_steps({"aug": ["~feature-cutoff", "~token-shuffle"]}, recipe="consert", steps=1)
    assert both.composition.model.dropout == 0.0
    assert both.losses[0] > none.losses[0]


def test_the_author_s_later_advice_is_three_settings() -> None:
    sets = ["train.lr=2e-5", "loss.infonce.temperature=0.05", "model.dropout=none"]
    run = run_steps(recipe="consert", sets=sets, steps=2)
    assert run.composition.model.dropout is None
    assert all(loss > 0 for loss in run.losses)


def test_the_recipe_learns() -> None:
    sets = ["train.batch_size=12", "train.lr=0.001", "train.schedule=constant", "train.warmup=0"]
    run = run_steps(recipe="consert", steps=60, sets=sets, corpus=tiny_corpus(12))
    assert sum(run.losses[-5:]) < 0.7 * sum(run.losses[:5])
