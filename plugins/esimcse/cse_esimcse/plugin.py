"""The records of ESimCSE; imports no torch."""

from __future__ import annotations

from cse_core.hookspecs import hookimpl
from cse_core.loading import records_of_files
from cse_core.records import AugmenterSpec, Paper, RecipeSpec, StoreSpec

PAPER = Paper("Wu, Gao, Zang, Han, Wang and Hu: ESimCSE, COLING 2022", "cse_esimcse:paper.bib")


@hookimpl
def cse_augmenters() -> list[AugmenterSpec]:
    """Return the repetition of words."""
    return [
        AugmenterSpec(
            name="word-repetition",
            summary="repeats some tokens or words of a row, so that lengths differ",
            factory="cse_esimcse.word_repetition:WordRepetition",
            options="cse_esimcse.options:WordRepetitionOptions",
            paper=PAPER,
        )
    ]


@hookimpl
def cse_negative_stores() -> list[StoreSpec]:
    """Return the queue."""
    return [
        StoreSpec(
            name="momentum-queue",
            summary="vectors of earlier batches, encoded by a moving average of the encoder",
            factory="cse_esimcse.momentum_queue:MomentumQueue",
            options="cse_esimcse.options:MomentumQueueOptions",
            keeps=True,
            paper=PAPER,
        )
    ]


@hookimpl
def cse_recipes() -> list[RecipeSpec]:
    """Return the paper's setting."""
    return records_of_files(RecipeSpec, "cse_esimcse:recipes", paper=PAPER)
