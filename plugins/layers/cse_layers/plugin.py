"""The records of 2D Matryoshka; imports no torch."""

from __future__ import annotations

from cse_core.hookspecs import hookimpl
from cse_core.loading import records_of_files
from cse_core.records import LossSpec, MultiVectorSpec, Paper, RecipeSpec

PAPER = Paper("Li et al.: 2D Matryoshka Sentence Embeddings, 2024", "cse_layers:paper.bib")


@hookimpl
def cse_poolers() -> list[MultiVectorSpec]:
    """Return the pooler of layers."""
    return [
        MultiVectorSpec(
            name="layer-vectors",
            summary="a vector from each layer but the last, beside that of the text",
            factory="cse_layers.layers:LayerVectors",
            options="cse_layers.options:LayerVectorsOptions",
            provides=("level:layer",),
            paper=PAPER,
        )
    ]


@hookimpl
def cse_losses() -> list[LossSpec]:
    """Return the loss."""
    return [
        LossSpec(
            name="every-layer",
            summary="InfoNCE of drawn layers, each near to the last one",
            factory="cse_layers.layers:EveryLayer",
            options="cse_layers.options:EveryLayerOptions",
            requires=lambda options: ("level:layer", f"view:{options.target}"),
            hint="add one: --pool +layer-vectors",
            paper=PAPER,
        )
    ]


@hookimpl
def cse_recipes() -> list[RecipeSpec]:
    """Return the recipe."""
    return records_of_files(RecipeSpec, "cse_layers:recipes", paper=PAPER)
