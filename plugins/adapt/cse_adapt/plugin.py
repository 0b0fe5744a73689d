"""The records of adapting; imports no torch."""

from __future__ import annotations

from cse_core.hookspecs import hookimpl
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
    return [
        RecipeSpec(
            name="adapt",
            summary="adapt an encoder to your own unlabelled text, and say whether it is better",
            path="cse_adapt:recipes/adapt.toml",
        )
    ]


@hookimpl
def cse_studies() -> list[StudySpec]:
    """Return the study of ways to adapt."""
    return [
        StudySpec(
            name="adapt/collections",
            summary="ways to adapt an encoder to a collection, by its judged queries",
            path="cse_adapt:studies/collections.toml",
        )
    ]
