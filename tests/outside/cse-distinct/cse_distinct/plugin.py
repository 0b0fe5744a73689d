"""The records of the store, the metric and the recipe; imports no torch."""

from __future__ import annotations

from cse_core.hookspecs import hookimpl
from cse_core.records import MetricSpec, RecipeSpec, StoreSpec
from cse_distinct.options import DistinctOptions


@hookimpl
def cse_negative_stores() -> list[StoreSpec]:
    """Return the store."""
    return [
        StoreSpec(
            name="distinct",
            summary="a queue of earlier vectors, of which no two are near-duplicates",
            factory="cse_distinct.distinct:Distinct",
            options=DistinctOptions,
        )
    ]


@hookimpl
def cse_metrics() -> list[MetricSpec]:
    """Return the metric."""
    return [
        MetricSpec(
            name="isoscore",
            summary="how evenly the vectors use the dimensions of their space",
            factory="cse_distinct.isoscore:IsoScore",
            paper="Rudman et al.: IsoScore: Measuring the Uniformity of Embedding Space "
            "Utilization, Findings of ACL 2022",
        )
    ]


@hookimpl
def cse_recipes() -> list[RecipeSpec]:
    """Return the recipe."""
    return [
        RecipeSpec(
            name="distinct",
            summary="dropout views and a large queue of a momentum encoder, near-duplicates out",
            path="cse_distinct:recipes/distinct.toml",
        )
    ]
