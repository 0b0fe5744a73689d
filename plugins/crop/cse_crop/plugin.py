"""The records of cropping; imports no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cse_core.hookspecs import hookimpl
from cse_core.loading import records_of_files
from cse_core.records import AugmenterSpec, Paper, RecipeSpec
from cse_core.run_info import RunInfo

if TYPE_CHECKING:
    from cse_crop.options import CropOptions

VIEWS = ("anchor", "positive")
PAPER = Paper("Gonzalez-Marquez, Berens and Kobak: Cropping, 2025", "cse_crop:paper.bib")


def _of_other_texts(options: CropOptions, facts: RunInfo) -> list[str]:
    """Warn where its views are not of one text, so that its spans are not either."""
    names = options.views or VIEWS
    columns = {name: facts.views[name]["column"] for name in names if name in facts.views}
    if len({*columns.values()}) < 2:
        return []
    texts = ", ".join(f"{name} of column {column}" for name, column in columns.items())
    return [f"its views are no spans of one text: {texts}; --set views.positive.column=text"]


@hookimpl
def cse_augmenters() -> list[AugmenterSpec]:
    """Return the augmenter."""
    return [
        AugmenterSpec(
            name="crop",
            summary="another span of the text for each view",
            factory="cse_crop.crop:Crop",
            options="cse_crop.options:CropOptions",
            views=VIEWS,
            point="text",
            plan_warnings=_of_other_texts,
            paper=PAPER,
        )
    ]


@hookimpl
def cse_recipes() -> list[RecipeSpec]:
    """Return the recipe."""
    return records_of_files(RecipeSpec, "cse_crop:recipes", paper=PAPER)
