"""The records of whitening and of recipes without training; imports no torch."""

from __future__ import annotations

from cse_core.hookspecs import hookimpl
from cse_core.loading import records_of_files
from cse_core.records import HeadSpec, Paper, RecipeSpec

PAPER = Paper(
    "Su et al.: Whitening Sentence Representations for Better Semantics and Faster Retrieval, 2021",
    "cse_whitening:paper.bib",
)


@hookimpl
def cse_poolers() -> list[HeadSpec]:
    """Return the head."""
    return [
        HeadSpec(
            name="whitening",
            summary="mean zero and covariance one on the texts that it is fitted to",
            factory="cse_whitening.whitening:Whitening",
            options="cse_whitening.options:WhiteningOptions",
            requires=("precision:fp32",),
            paper=PAPER,
        )
    ]


@hookimpl
def cse_recipes() -> list[RecipeSpec]:
    """Return the recipes."""
    return [
        *records_of_files(RecipeSpec, "cse_whitening:recipes", "whitening", paper=PAPER),
        *records_of_files(RecipeSpec, "cse_whitening:recipes", "first-last"),
    ]
