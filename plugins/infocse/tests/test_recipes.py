"""The kit over InfoCSE's recipes, beside whole tables of their settings."""

from __future__ import annotations

from pathlib import Path

from cse_testkit import RecipeSuite, run_steps, tiny_corpus

CORPUS = tiny_corpus(columns=("document", "title"))
SETTINGS = Path(__file__).parent / "settings"


class TestInfocse(RecipeSuite):
    recipe = "infocse"
    settings = SETTINGS / "infocse.toml"


class TestFinetune(RecipeSuite):
    recipe = "infocse-finetune"
    settings = SETTINGS / "infocse-finetune.toml"


class TestPlus(RecipeSuite):
    recipe = "infocse-plus"
    settings = SETTINGS / "infocse-plus.toml"


class TestNeighbour(RecipeSuite):
    recipe = "neighbour"
    settings = SETTINGS / "neighbour.toml"


class TestPrecedingContext(RecipeSuite):
    recipe = "preceding-context"
    settings = SETTINGS / "preceding-context.toml"


class TestSpan(RecipeSuite):
    recipe = "span"
    settings = SETTINGS / "span.toml"


class TestMirrorBert(RecipeSuite):
    recipe = "mirror-bert"
    settings = SETTINGS / "mirror-bert.toml"


class TestInverseCloze(RecipeSuite):
    recipe = "inverse-cloze"
    settings = SETTINGS / "inverse-cloze.toml"

    def promise_it_trains(self) -> None:
        """In batches of 8: four pairs in order are of one document, and no negatives."""
        run = run_steps(recipe="inverse-cloze", sets=["train.batch_size=8"], corpus=CORPUS)
        assert all(loss > 0 for loss in run.losses)
