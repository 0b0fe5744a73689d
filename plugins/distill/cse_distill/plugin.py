"""The records of the losses of a teacher; imports no torch."""

from __future__ import annotations

from functools import partial
from itertools import chain, repeat
from typing import TYPE_CHECKING

from cse_core.hookspecs import hookimpl
from cse_core.loading import records_of_files
from cse_core.records import LossSpec, Paper, PerText, Reads, RecipeSpec, StudySpec
from cse_core.run_info import RunInfo

if TYPE_CHECKING:
    from cse_distill.options import ListOptions, MseOptions, TaughtOptions

VECTORS = Paper(
    "Reimers and Gurevych: Knowledge Distillation, EMNLP 2020",
    "cse_distill:papers/reimers-gurevych-2020-making.bib",
)
MARGINS = Paper(
    "Hofstaetter et al.: Cross-Architecture Knowledge Distillation, 2020",
    "cse_distill:papers/hofstatter-etal-2020-improving.bib",
)
LEAF = Paper(
    "Vujanic and Rueckstiess: LEAF, 2025", "cse_distill:papers/vujanic-rueckstiess-2025-leaf.bib"
)
SOFT = Paper(
    "Hinton, Vinyals and Dean: Distilling the Knowledge in a Neural Network, 2015",
    "cse_distill:papers/hinton-etal-2015-distilling.bib",
)


def _of_vectors(options: MseOptions) -> tuple[tuple[str, str], ...]:
    views = ("anchor", options.target) if options.sides == "both" else ("anchor",)
    return tuple((view, options.teacher) for view in views)


def _of_lists(options: ListOptions) -> tuple[tuple[str, str], ...]:
    views = () if options.scores else ("anchor", options.target, *options.views)
    return tuple((view, options.teacher) for view in views)


def _needs(options: ListOptions) -> tuple[str, ...]:
    needs = () if options.scores else (f"branch:{options.teacher}",)
    own = [f"view:{name}" for name in options.views or ("negative",)]
    return (*needs, *own) if options.candidates == "own" else needs


def _scores(options: ListOptions) -> Reads:
    """Lay the columns beside their views, whose texts may be lists."""
    views = chain((options.target, *(options.views or ("negative",))), repeat(""))
    return {name: PerText("float", view) for name, view in zip(options.scores, views, strict=False)}


def _with_views(options: ListOptions, facts: RunInfo) -> ListOptions:
    """Name the views of negatives, and refuse scores that are not as many."""
    from cse_distill.options import KlOptions

    negatives = tuple(name for name, view in facts.views.items() if view["role"] == "negative")
    views, count = options.views or negatives, len(options.scores)
    margins = not isinstance(options, KlOptions) and count == 1 and options.candidates == "own"
    if count and not margins and count != 1 + len(views):
        names = ", ".join(("positive", *views))
        raise ValueError(f"scores = {list(options.scores)}: one column each for {names}")
    return options.model_copy(update={"views": views})


def _taught_by_itself(options: TaughtOptions, facts: RunInfo) -> list[str]:
    """Warn of a teacher that is the model in training, as it starts."""
    name = options.teacher
    if facts.branches.get(name, {}).get("model") != "self" or getattr(options, "scores", ()):
        return []
    return [f"its teacher is {facts.model} itself: --branch.{name}.model MODEL names another"]


@hookimpl
def cse_losses() -> list[LossSpec]:
    """Return the losses."""
    lists = partial(
        LossSpec,
        requires=_needs,
        reads=_scores,
        encodes=_of_lists,
        contrastive=False,
        resolve_options=_with_views,
        plan_warnings=_taught_by_itself,
    )
    return [
        LossSpec(
            name="mse",
            summary="vectors near those of a teacher",
            factory="cse_distill.vectors:Mse",
            options="cse_distill.options:MseOptions",
            requires=lambda options: (f"branch:{options.teacher}",),
            encodes=_of_vectors,
            contrastive=False,
            plan_warnings=_taught_by_itself,
            paper=VECTORS,
        ),
        lists(
            name="margin-mse",
            summary="a teacher's margins between positives and negatives",
            factory="cse_distill.lists:MarginMse",
            options="cse_distill.options:ListOptions",
            paper=MARGINS,
        ),
        lists(
            name="kl",
            summary="a teacher's distributions over a text's candidates",
            factory="cse_distill.lists:Kl",
            options="cse_distill.options:KlOptions",
            paper=SOFT,
        ),
    ]


@hookimpl
def cse_recipes() -> list[RecipeSpec]:
    """Return the recipes."""
    return [
        *records_of_files(RecipeSpec, "cse_distill:recipes", "distill", paper=VECTORS),
        *records_of_files(RecipeSpec, "cse_distill:recipes", "leaf", paper=LEAF),
    ]


@hookimpl
def cse_studies() -> list[StudySpec]:
    """Return a student beside its teacher."""
    return records_of_files(StudySpec, "cse_distill:studies", prefix="distill/", paper=LEAF)
