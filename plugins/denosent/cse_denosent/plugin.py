"""The records of DenoSent; imports no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cse_core.hookspecs import hookimpl
from cse_core.loading import records_of_files
from cse_core.records import LossSpec, Paper, RecipeSpec, StudySpec, TokenLossSpec

if TYPE_CHECKING:
    from cse_denosent.options import DenoiseOptions

PAPER = Paper("Wang et al.: DenoSent, AAAI 2024", "cse_denosent:paper.bib")


def _views(options: DenoiseOptions) -> tuple[str, ...]:
    return tuple(dict.fromkeys((options.view, options.target)))


@hookimpl
def cse_losses() -> list[LossSpec]:
    """Return the loss of the decoder."""
    return [
        TokenLossSpec(
            name="denoise",
            summary="a decoder rebuilds a text from noisy embeddings and a vector",
            factory="cse_denosent.loss:Denoise",
            options="cse_denosent.options:DenoiseOptions",
            tokens=_views,
            requires=lambda options: tuple(f"view:{name}" for name in _views(options)),
            paper=PAPER,
        )
    ]


@hookimpl
def cse_recipes() -> list[RecipeSpec]:
    """Return the recipe."""
    return records_of_files(RecipeSpec, "cse_denosent:recipes", paper=PAPER)


@hookimpl
def cse_studies() -> list[StudySpec]:
    """Return both objectives alone and together."""
    return records_of_files(StudySpec, "cse_denosent:studies", prefix="denosent/", paper=PAPER)
