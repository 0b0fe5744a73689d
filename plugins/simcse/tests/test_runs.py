"""Whole runs of the recipes: from a csv file to a model folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cse_testkit import compose, installed_registry, run_steps, tiny_corpus, write_corpus

from cse_cli.models.saved_model import load
from cse_core.errors import CseError
from cse_core.recipes.composition import Composition
from cse_core.runtime.reporter import Reporter
from cse_core.training.run import train

TRIPLETS = ("positive", "negative")


def trained(recipe: str, folder: Path, columns: tuple[str, ...], *sets: str) -> Path:
    """Train a recipe on a csv file with these columns; return the run's folder."""
    corpus = tiny_corpus(columns=columns)
    file = write_corpus(corpus, folder / "rows.csv")
    composition: Composition = compose(
        recipe=recipe,
        corpus=corpus,
        sets=[f"data.path=[{file}]", "train.max_steps=4", "train.device=cpu", *sets],
    )
    run = folder / "run"
    train(composition, installed_registry(), out=run, reporter=Reporter())
    return run


def manifest(run: Path) -> dict[str, Any]:
    return json.loads((run / "model" / "cse.json").read_text(encoding="utf-8"))


def test_a_supervised_run_keeps_its_head(tmp_path: Path) -> None:
    run = trained("simcse-supervised", tmp_path, TRIPLETS)
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [1, 2, 3, 4]
    assert all(line["loss"] > 0 for line in lines)
    # Four rows: three other positives, and the hard negatives of all four. Rows 3 and 4 of the
    # corpus have one text, so a batch that holds both has a positive less for each of them.
    seen = [line["infonce.negatives"] for line in lines]
    assert max(seen) == 7.0 and min(seen) >= 6.0
    assert [head["use"] for head in manifest(run)["heads"]] == ["mlp"]
    modules = json.loads((run / "model" / "modules.json").read_text(encoding="utf-8"))
    assert any(module["type"].endswith("Dense") for module in modules)
    vectors = load(str(run), installed_registry()).encode(["Anna paints the boat.", "Boat"])
    assert vectors.shape == (2, 32)
    assert abs(vectors).max() < 1, "behind tanh"


def test_an_unsupervised_run_leaves_its_head_out(tmp_path: Path) -> None:
    run = trained("simcse", tmp_path, ())
    assert manifest(run)["heads"] == []
    vectors = load(str(run), installed_registry()).encode(["Anna paints the boat."])
    assert abs(vectors).max() > 1, "the state of [CLS] itself"


def test_triplets_without_a_negative_are_refused_in_one_line() -> None:
    with pytest.raises(CseError) as caught:
        compose(recipe="simcse-supervised", corpus=tiny_corpus(columns=("positive",)))
    line = str(caught.value)
    assert "\n" not in line
    assert "negatives.hard-negatives" in line and "column 'negative'" in line
    assert "--set data.columns.negative=" in line


def test_a_file_without_a_negative_is_refused_when_it_is_read(tmp_path: Path) -> None:
    """The same, where the columns are not known before the run begins."""
    file = write_corpus(tiny_corpus(columns=("positive",)), tmp_path / "pairs.csv")
    composition = compose(
        recipe="simcse-supervised",
        corpus=tiny_corpus(columns=TRIPLETS),
        sets=[f"data.path=[{file}]", "train.max_steps=1", "train.device=cpu"],
    )
    with pytest.raises(CseError) as caught:
        train(composition, installed_registry(), out=tmp_path / "run", reporter=Reporter())
    assert "negative" in str(caught.value) and "\n" not in str(caught.value)
    assert not (tmp_path / "run" / "run.toml").exists()


def test_the_column_of_the_negatives_is_an_option() -> None:
    corpus = tiny_corpus(columns=("positive", "contradiction"))
    run = run_steps(
        recipe="simcse-supervised",
        sets=["negatives.hard-negatives.column=contradiction"],
        corpus=corpus,
    )
    assert all(loss > 0 for loss in run.losses)
    assert run.scalars[0]["infonce.negatives"] == 7.0


def test_a_weight_of_hard_negatives_changes_the_loss() -> None:
    corpus = tiny_corpus(columns=TRIPLETS)
    light, heavy = (
        run_steps(
            recipe="simcse-supervised",
            sets=[f"negatives.hard-negatives.weight={weight}"],
            corpus=corpus,
            steps=1,
        ).losses[0]
        for weight in (0.0, 2.0)
    )
    assert heavy > light


def test_dropout_alone_makes_the_two_views() -> None:
    """With dropout off both views are equal, so every anchor is nearest to its own positive."""
    on = run_steps(recipe="simcse", steps=1)
    off = run_steps(recipe="simcse", steps=1, sets=["model.dropout=0"])
    assert on.losses[0] != off.losses[0]
    assert on.composition.views[1].column == "text"
    assert [view.name for view in on.composition.views] == ["anchor", "positive"]


def test_the_recipe_learns() -> None:
    """Sixty steps over the same twelve sentences bring the loss down by half."""
    sets = ["train.batch_size=12", "train.lr=0.003", "train.schedule=constant"]
    run = run_steps(recipe="simcse", steps=60, sets=sets, corpus=tiny_corpus(12))
    assert sum(run.losses[-5:]) < 0.5 * sum(run.losses[:5])
