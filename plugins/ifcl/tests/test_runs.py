"""IFCL's metric in a run, and what its plan says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cse_testkit import (
    ENCODERS,
    compose,
    installed_registry,
    shared_encoder,
    tiny_corpus,
    write_corpus,
)

from cse_cli.main import run as cse
from cse_core.recipes.compose import resolve
from cse_core.recipes.composition import Composition


def test_a_metric_is_scored_on_the_dev_pairs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    data = write_corpus(tiny_corpus(columns=("fraternal",)), tmp_path / "parallel.csv")
    dev, out = tmp_path / "dev.tsv", tmp_path / "run"
    rows = [f"{score}\ttext {n}\tother {n}" for n, score in enumerate([5.0, 5.0, 5.0, 1.0, 0.0])]
    dev.write_text("\n".join(["score\tsentence1\tsentence2", *rows]), encoding="utf-8")
    words = [
        "train", "--recipe", "ifcl", "--model", str(shared_encoder()), "--data", str(data),
        "--dev", str(dev), "--out", str(out), "-q", "--metric", "mutual-information",
        "--train.batch_size", "4", "--train.precision", "fp32", "--train.device", "cpu",
        "--train.max_steps", "3", "--aug.fusion.epsilon", "0.5",
    ]  # fmt: skip
    assert cse(words) == 0
    numbers: dict[str, Any] = {}
    for line in (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines():
        numbers |= json.loads(line)
    for name, count in (("task", 3), ("identical", 12), ("fraternal", 12)):
        assert numbers[f"dev.mutual-information.{name}_n"] == count
        assert f"dev.mutual-information.{name}" in numbers
    assert numbers["twins.negatives"] > 9, "in the batch and in the queue"
    assert numbers["twins.innate_margin"] > 0, "fusion moves the input embeddings away"


def planned(recipe: str, encoder: str, *sets: str, **changes: Any) -> Composition:
    facts = replace(ENCODERS[encoder], **changes)
    return resolve(
        installed_registry(), recipe=recipe, model=facts.model, sets=list(sets), facts=facts
    )


def test_a_vocabulary_not_made_for_the_other_language_is_warned_of() -> None:
    for encoder, name, sets, warned in (
        ("roberta-base", "roberta-base", (), True),
        ("roberta-large", "xlm-roberta-large", (), False),
        ("bert-base", "bert-base-uncased", (), False),
        ("bert-base", "bert-base-uncased", ("aug.fusion.model=none",), True),
        ("bert-base", "bert-base-multilingual-uncased", ("aug.fusion.model=none",), False),
        ("starter", "starter", (), False),
    ):
        for recipe in ("ifcl", "ifcl-zh"):
            warnings = planned(recipe, encoder, *sets, model=name).warnings
            start = "aug.fusion: column fraternal is read by"
            found = [each for each in warnings if each.startswith(start)]
            assert bool(found) == warned
            assert not warned or name in found[0]
    made = planned("ifcl", "bert-base", model="all-MiniLM-L6-v2", hidden=384, embedding=384)
    assert any("all-MiniLM-L6-v2 itself" in each for each in made.warnings)


def test_the_plan_says_which_twins_a_store_holds() -> None:
    corpus, kinds = tiny_corpus(columns=("fraternal",)), {"negatives": ["queue"]}
    for view in ("positive", "anchor"):
        sets = [f"negatives.queue.view={view}"]
        made = compose(recipe="ifcl", kinds=kinds, sets=sets, corpus=corpus)  # type: ignore[arg-type]
        printed = [note for note in made.notes if "the fraternal twins; the paper's queue" in note]
        assert len(printed) == (view == "positive")
        assert not printed or "--negatives.queue.view anchor" in printed[0]
    own = compose(recipe="ifcl", corpus=corpus)
    assert not [note for note in own.notes if "fraternal twins" in note]
