"""The records of whitening and of recipes without training; imports no torch."""

from __future__ import annotations

from cse_core.hookspecs import hookimpl
from cse_core.records import HeadSpec, Paper, RecipeSpec

PAPER = Paper(
    "Su et al.: Whitening Sentence Representations for Better Semantics and Faster Retrieval, 2021",
    bibtex=r"""@misc{su-etal-2021-whitening,
    title = "Whitening Sentence Representations for Better Semantics and Faster Retrieval",
    author = "Su, Jianlin and Cao, Jiarun and Liu, Weijie and Ou, Yangyiwen",
    year = "2021",
    eprint = "2103.15316",
    archivePrefix = "arXiv",
}""",
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
        RecipeSpec(
            name="whitening",
            summary="no training: the mean of the first and the last layer, whitened",
            path="cse_whitening:recipes/whitening.toml",
            paper=PAPER,
        ),
        RecipeSpec(
            name="first-last",
            summary="no training: the mean of the first and the last layer",
            path="cse_whitening:recipes/first-last.toml",
        ),
    ]
