"""IFCL's metric in a run, and what its plan says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cse_testkit import (
    ENCODERS,
    compose,
    installed_registry,
    tiny_corpus,
)

from cse_core.recipes.compose import resolve
from cse_core.recipes.composition import Composition


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
