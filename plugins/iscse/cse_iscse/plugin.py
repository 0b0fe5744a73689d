"""The records of IS-CSE; imports no torch."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cse_core.hookspecs import hookimpl
from cse_core.loading import records_of_files
from cse_core.records import MinerSpec, Paper, RecipeSpec, ScheduleSpec, StudySpec
from cse_core.run_info import RunInfo
from cse_iscse import filling

if TYPE_CHECKING:
    from cse_iscse.options import SmoothingOptions

PAPER = Paper("He et al.: IS-CSE, AAAI 2023", "cse_iscse:paper.bib")


def _of_a_positive(options: SmoothingOptions, facts: RunInfo) -> SmoothingOptions:
    """Refuse views that no row of the batch has as its positive."""
    view = facts.views.get(options.view)
    if view is not None and view["role"] != "positive":
        positives = [name for name, info in facts.views.items() if info["role"] == "positive"]
        known = " or ".join(positives or ["positive"])
        raise ValueError(f"view = {options.view}: only a positive can be smoothed; write {known}")
    return options


@hookimpl
def cse_schedules() -> list[ScheduleSpec]:
    """Return the shape of the smoothed loss's weight."""
    return [
        ScheduleSpec(
            name="quarter-cosine",
            summary="rises by a quarter of a cosine over half the round (IS-CSE, Eq. 8)",
            factory="cse_iscse.alpha:quarter_cosine",
        )
    ]


@hookimpl
def cse_positive_miners() -> list[MinerSpec]:
    """Return the two ways of smoothing."""
    smoothing = partial(
        MinerSpec,
        requires=lambda options: (f"view:{options.view}",),
        paper=PAPER,
        resolve_options=_of_a_positive,
        plan_notes=filling.notes,
        plan_warnings=filling.warnings,
    )
    return [
        smoothing(
            name="knn-smoothing",
            summary="each positive averaged with its nearest neighbours in a buffer, by attention",
            factory="cse_iscse.smoothing:KnnSmoothing",
            options="cse_iscse.options:KnnOptions",
            provides=("positives:knn-smoothing",),
        ),
        smoothing(
            name="kmeans-smoothing",
            summary="each positive mixed with the centroid of its cluster in a buffer",
            factory="cse_iscse.smoothing:KmeansSmoothing",
            options="cse_iscse.options:KmeansOptions",
            provides=("positives:kmeans-smoothing",),
        ),
    ]


@hookimpl
def cse_recipes() -> list[RecipeSpec]:
    """Return IS-CSE over SimCSE, DCLR and CARDS."""
    return records_of_files(RecipeSpec, "cse_iscse:recipes", paper=PAPER)


@hookimpl
def cse_studies() -> list[StudySpec]:
    """Return the tables and figures of the paper."""
    return records_of_files(StudySpec, "cse_iscse:studies", prefix="iscse/", paper=PAPER)
