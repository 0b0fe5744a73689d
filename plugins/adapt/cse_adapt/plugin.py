"""The records of adapting; imports no torch."""

from __future__ import annotations

from cse_core.hookspecs import hookimpl
from cse_core.loading import records_of_files
from cse_core.records import AugmenterSpec, RecipeSpec, StudySpec, SuiteSpec


@hookimpl
def cse_augmenters() -> list[AugmenterSpec]:
    """Return the augmenter."""
    return [
        AugmenterSpec(
            name="question",
            summary="a title or sentence as the anchor, the text without it as the positive",
            factory="cse_adapt.question:Question",
            options="cse_adapt.options:QuestionOptions",
            views=("anchor", "positive"),
            point="text",
        )
    ]


@hookimpl
def cse_suites() -> list[SuiteSpec]:
    """Return the suite."""
    return [
        SuiteSpec(
            name="held-out",
            summary="documents kept out of training, found by their own titles and sentences",
            factory="cse_adapt.held_out:HeldOut",
            dev="rows",
        )
    ]


@hookimpl
def cse_recipes() -> list[RecipeSpec]:
    """Return the recipe."""
    return records_of_files(RecipeSpec, "cse_adapt:recipes")


@hookimpl
def cse_studies() -> list[StudySpec]:
    """Return the study of ways to adapt."""
    return records_of_files(StudySpec, "cse_adapt:studies", prefix="adapt/")
