"""The kit over InfoCSE's distribution, parts and recipes."""

from pathlib import Path

from cse_testkit import part_suites, recipe_suites, run_steps, tiny_corpus


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
globals().update(
    part_suites(
        "cse-infocse",
        {
            "positives.idc-kmeans": {"options": {"clusters": 2}},
            "positives.preceding-context": {"options": {"context": "mean"}},
            "positives.span": {"options": {"combine": "mean"}},
        },
        columns=("document", "title"),
    )
)
