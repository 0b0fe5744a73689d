"""The kit over InfoCSE's recipes, beside whole tables of their settings."""

from __future__ import annotations

from pathlib import Path

from cse_testkit import recipe_suites, run_steps, tiny_corpus


def trains(self: object) -> None:
    """In batches of 8: four pairs in order are of one document, and no negatives."""
    corpus = tiny_corpus(columns=("document", "title"))
    run = run_steps(recipe="inverse-cloze", sets=["train.batch_size=8"], corpus=corpus)
    assert all(loss > 0 for loss in run.losses)


globals().update(
    recipe_suites(
        "cse-infocse",
        Path(__file__).parent / "settings",
        {"inverse-cloze": {"promise_it_trains": trains}},
    )
)
