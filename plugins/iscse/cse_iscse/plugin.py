"""The records of IS-CSE; imports no torch."""

from __future__ import annotations

from cse_core.records import MinerSpec, RecipeSpec, StudySpec
from cse_core.specs import hookimpl
from cse_iscse import filling
from cse_iscse.options import KmeansOptions, KnnOptions
from cse_iscse.papers import PAPER
from cse_iscse.tables import studies


@hookimpl
def cse_positive_miners() -> list[MinerSpec]:
    """Return the two ways of smoothing."""
    return [
        MinerSpec(
            name="knn-smoothing",
            summary="each positive averaged with its nearest neighbours in a buffer, by attention",
            factory="cse_iscse.knn_smoothing:KnnSmoothing",
            options=KnnOptions,
            provides=("positives:knn-smoothing",),
            requires=lambda options: (f"view:{options.view}",),
            paper=PAPER,
            plan_notes=filling.notes,
            plan_warnings=filling.warnings,
        ),
        MinerSpec(
            name="kmeans-smoothing",
            summary="each positive mixed with the centroid of its cluster in a buffer",
            factory="cse_iscse.kmeans_smoothing:KmeansSmoothing",
            options=KmeansOptions,
            provides=("positives:kmeans-smoothing",),
            requires=lambda options: (f"view:{options.view}",),
            paper=PAPER,
            plan_notes=filling.notes,
            plan_warnings=filling.warnings,
        ),
    ]


@hookimpl
def cse_recipes() -> list[RecipeSpec]:
    """Return IS-CSE over SimCSE, DCLR and CARDS."""
    shown = {
        "is-cse": "SimCSE with a second loss towards positives smoothed over their neighbours",
        "is-cse-dclr": "IS-CSE over DCLR: its noise, weights and loss, and smoothed positives",
        "is-cse-cards": "IS-CSE over CARDS: its views and negatives, and smoothed positives",
    }
    return [
        RecipeSpec(name=name, summary=summary, path=f"cse_iscse:recipes/{name}.toml", paper=PAPER)
        for name, summary in shown.items()
    ]


@hookimpl
def cse_studies() -> list[StudySpec]:
    """Return the tables and figures of the paper."""
    return studies()
