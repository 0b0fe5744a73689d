"""What the plan says of InfoCSE's recipes before anything is read."""

from pathlib import Path
from typing import Any

from cse_testkit import installed_registry

from cse_cli.training.resolving import advice
from cse_engine.compose.composition import Composition
from cse_engine.run.recipe_file import as_recipe
from tests.fixtures import methods
from tests.fixtures.methods import refusal


def planned(*sets: str, recipe: str = "infocse", **given: Any) -> Composition:
    known: Any = {"rows": 9000, "columns": ("text", "document", "title")}
    return methods.planned(recipe, *sets, data=["articles.jsonl"], **known, **given)


def about_patience(composition: Composition) -> list[str]:
    lines = advice(composition, installed_registry())
    return [line for line in lines if "has no effect without a dev set" in line]


def test_a_patience_without_a_dev_set_is_told() -> None:
    (line,) = about_patience(planned())
    assert line.startswith("train.patience = 20000 steps ") and "all its 200000 steps" in line
    assert "--dev FILE" in line
    assert not about_patience(planned(dev=["news.dev.jsonl"]))
    assert not about_patience(planned("train.patience=none"))
    (line,) = about_patience(planned(recipe="infocse-finetune", dev=["none"]))
    assert line.startswith("positives.labels.patience = 2 epochs ") and "all its epochs" in line


def printed(composition: Composition) -> str:
    return "\n".join(composition.notes)


def test_notes_of_the_starters_caps_are_about_parts_that_have_them() -> None:
    whole = planned(encoder="starter")
    assert "positives.idc.pairs = 30000; positives.idc.rounds = 3" in printed(whole)
    assert "in 3 rounds of clusters" in printed(whole)
    alone = planned(encoder="starter", kinds={"positives": ["~neighbour"]})
    assert "positives.idc.pairs = 30000" in printed(alone)
    assert as_recipe(alone)["positives"][0]["pairs"] == 30_000
    replaced = planned(encoder="starter", kinds={"positives": ["idc"]})
    assert "pairs" not in as_recipe(replaced)["positives"][0]
    assert "--positives replaces " in printed(replaced)
    assert "train.batch_size = 256" in printed(replaced)


def test_starts_stand_before_clusters() -> None:
    for flags, wanted in (
        (["~neighbour"], ["idc"]),
        (["~idc", "+idc-kmeans"], ["neighbour", "idc-kmeans"]),
        (["inverse-cloze", "+idc"], ["inverse-cloze", "idc"]),
    ):
        made = planned(kinds={"positives": flags})
        assert [part.name for part in made.of("positives")] == wanted


def test_a_plan_needs_the_file_of_labels(tmp_path: Path) -> None:
    file = tmp_path / "titles.jsonl"
    recipes = (("infocse-finetune", "labels"), ("infocse-plus", "idc-labels"))
    for recipe, part in recipes:
        line = refusal(planned, f"positives.{part}.file={file}", recipe=recipe)
        assert line.startswith(f"positives.{part}: no file ")
    file.touch()
    for recipe, part in recipes:
        planned(f"positives.{part}.file={file}", recipe=recipe)


def test_what_an_option_of_another_way_would_do_is_refused_in_one_line() -> None:
    for setting in ("neighbours=2", "similarity=dot"):
        kinds = {"positives": ["~idc", "+idc-kmeans"]}
        line = refusal(planned, f"positives.idc-kmeans.{setting}", kinds=kinds)
        assert f"positives.idc-kmeans.{setting.partition('=')[0]}" in line


def test_a_plan_says_what_rounds_of_labels_take() -> None:
    said = printed(planned(recipe="infocse-finetune", dev=["none"]))
    assert "has batches of 64 and at most 20 epochs, not those of train" in said


def test_a_start_without_evaluations_is_told() -> None:
    sets = ("train.select_start=true", "train.eval_steps=0", "train.patience=none")
    said = advice(planned(*sets, dev=["news.dev.jsonl"]), installed_registry())
    (line,) = (line for line in said if "select_start" in line)
    assert "no effect without evaluations: the last weights are kept; set train.eval_steps" in line
