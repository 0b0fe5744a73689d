"""The records of SimCSE; imports no torch."""

from __future__ import annotations

from cse_core.hookspecs import hookimpl
from cse_core.loading import records_of_files
from cse_core.records import Paper, PoolSpec, RecipeSpec, RowPoolerSpec, StoreSpec

PAPER = Paper("Gao, Yao and Chen: SimCSE, EMNLP 2021", "cse_simcse:paper.bib")


@hookimpl
def cse_poolers() -> list[PoolSpec]:
    """Return the pooler of the public code that is not the core's."""
    return [
        RowPoolerSpec(
            name="avg-top2",
            summary="the mean of the last two layers",
            factory="cse_simcse.avg_top2:AvgTop2",
            paper=PAPER,
        )
    ]


@hookimpl
def cse_negative_stores() -> list[StoreSpec]:
    """Return the hard negatives of the supervised setting."""
    return [
        StoreSpec(
            name="hard-negatives",
            summary="each sentence's own negative from a column, with a weight as a logit",
            factory="cse_simcse.hard_negatives:HardNegatives",
            options="cse_simcse.options:HardNegativesOptions",
            provides=lambda options: (f"view:{options.view}",),
            requires=lambda options: (f"column:{options.column}",),
            paper=PAPER,
        )
    ]


@hookimpl
def cse_recipes() -> list[RecipeSpec]:
    """Return the unsupervised and the supervised setting."""
    return [
        *records_of_files(
            RecipeSpec,
            "cse_simcse:recipes",
            "simcse",
            paper=PAPER,
            sources="cse_simcse:sources/simcse.toml",
        ),
        *records_of_files(RecipeSpec, "cse_simcse:recipes", "simcse-supervised", paper=PAPER),
    ]
