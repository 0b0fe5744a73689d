"""What ``run.toml`` says is the whole composition: nothing is derived again on a resume."""

import json
from itertools import combinations
from pathlib import Path

import pytest
from cse_testkit import installed_registry

from cse_core.errors import CseError
from cse_core.records import RecipeSpec
from cse_engine.compose import compose
from cse_engine.compose.compose import resolve
from cse_engine.compose.composition import Composition
from cse_engine.compose.settings import CORE_OPTIONS
from cse_engine.run.recipe_file import as_recipe, dump_recipe
from tests.fixtures.tiny import Known

OPTIONAL = ("positive", "negative", "fraternal")
"""Columns that change what views read where the data has them."""


def test_a_run_is_composed_again_as_it_was_whatever_columns_the_data_has(tmp_path: Path) -> None:
    registry, record = installed_registry(), tmp_path / "run.toml"
    recipes = [None, *(found.name for found in registry.all(RecipeSpec))]
    subsets = [each for count in range(4) for each in combinations(OPTIONAL, count)]
    composed, read = 0, dict[str, Composition]()
    for recipe in recipes:
        for subset in subsets:
            columns = ("text", "document", "title", *subset)
            try:
                first = resolve(registry, recipe=recipe, lookup=lambda _, c=columns: Known(c, 60))
            except CseError:
                continue  # the recipe needs another column, or a model that is not here
            if (content := json.dumps(as_recipe(first), default=str)) not in read:
                record.write_text(dump_recipe(first), encoding="utf-8")
                read[content] = resolve(registry, recipe=record)
            again = read[content]
            what = f"{recipe} with columns {columns}"
            for name in (*CORE_OPTIONS, "params", "parts", "views", "passes", "inference_pool"):
                assert getattr(again, name) == getattr(first, name), (what, name)
            composed += 1
    assert composed > len(recipes)


def test_parts_and_columns_of_a_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry, record = installed_registry(), tmp_path / "run.toml"
    kinds = {"pool": ["mean"], "loss": ["infonce"]}
    first = resolve(registry, kinds=kinds, lookup=lambda _: Known(("text", "positive"), 60))
    record.write_text(dump_recipe(first), encoding="utf-8")
    positive = resolve(registry, recipe=record).view("positive")
    assert positive is not None and positive.column == "positive"
    with pytest.raises(CseError, match="column"):
        resolve(registry, recipe=record, lookup=lambda _: Known(("text",), 60))
    registry, record, said = installed_registry(), tmp_path / "run.toml", compose._call_record
    first = resolve(registry, recipe="simcse")
    record.write_text(dump_recipe(first) + '[versions]\ntorch = "2"\n', encoding="utf-8")
    asked: list[str] = []
    monkeypatch.setattr(
        compose, "_call_record", lambda part, *a: asked.append(a[0]) or said(part, *a)
    )
    assert resolve(registry, recipe=record).parts == first.parts
    assert "resolve_options" not in asked
    resolve(registry, recipe=record, sets=["train.seed=1"])
    assert "resolve_options" in asked
