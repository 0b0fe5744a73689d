"""The records of IS-CSE; imports no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cse_core.hookspecs import hookimpl
from cse_core.records import MinerSpec, Paper, RecipeSpec, ScheduleSpec, StudySpec
from cse_core.run_info import RunInfo
from cse_iscse import filling

if TYPE_CHECKING:
    from cse_iscse.options import SmoothingOptions

PAPER = Paper(
    "He et al.: IS-CSE, AAAI 2023",
    bibtex=r"""@inproceedings{he-etal-2023-instance,
    title = "Instance Smoothed Contrastive Learning for Unsupervised Sentence Embedding",
    author = "He, Hongliang and Zhang, Junlei and Lan, Zhenzhong and Zhang, Yue",
    booktitle = "Proceedings of the AAAI Conference on Artificial Intelligence",
    year = "2023",
}""",
)

STUDIES = {
    "table-1": "IS-CSE over SimCSE, DCLR and CARDS",
    "table-2": "Settings of IS-CSE, the paper's beside the recipe's",
    "table-3": "Positives smoothed over neighbours, over clusters, and both",
    "table-4": "Vectors of the buffer",
    "table-5": "Neighbours of a sentence",
    "table-6": "Weight of the smoothed loss, constant and rising",
    "table-7": "Temperature of the smoothing",
    "table-8": "Transfer tasks",
    "table-9": "What a sentence is smoothed over: its neighbours in the buffer",
    "figure-1": "SimCSE beside IS-CSE, from their plans",
    "figure-2": "Buffer, retrieval and smoothing, from the plans of both groups",
    "figure-3": "Alignment and uniformity",
    "figure-4": "Cosines of pairs, by groups of their gold score",
    "figure-5": "Ten seeds of SimCSE, DCLR and IS-CSE",
}
"""Tables and figures of the paper, each a file in ``studies/``."""


def _of_a_positive(options: SmoothingOptions, facts: RunInfo) -> SmoothingOptions:
    """Refuse views that no row of the batch has as its positive."""
    view = facts.views.get(options.view)
    if view is not None and view["role"] != "positive":
        positives = [name for name, each in facts.views.items() if each["role"] == "positive"]
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
    return [
        MinerSpec(
            name="knn-smoothing",
            summary="each positive averaged with its nearest neighbours in a buffer, by attention",
            factory="cse_iscse.smoothing:KnnSmoothing",
            options="cse_iscse.options:KnnOptions",
            provides=("positives:knn-smoothing",),
            requires=lambda options: (f"view:{options.view}",),
            paper=PAPER,
            resolve_options=_of_a_positive,
            plan_notes=filling.notes,
            plan_warnings=filling.warnings,
        ),
        MinerSpec(
            name="kmeans-smoothing",
            summary="each positive mixed with the centroid of its cluster in a buffer",
            factory="cse_iscse.smoothing:KmeansSmoothing",
            options="cse_iscse.options:KmeansOptions",
            provides=("positives:kmeans-smoothing",),
            requires=lambda options: (f"view:{options.view}",),
            paper=PAPER,
            resolve_options=_of_a_positive,
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
    return [
        StudySpec(
            name=f"iscse/{place}",
            summary=summary,
            path=f"cse_iscse:studies/{place}.toml",
            paper=PAPER,
        )
        for place, summary in STUDIES.items()
    ]
