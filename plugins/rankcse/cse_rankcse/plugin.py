"""The records of RankCSE; imports no torch."""

from __future__ import annotations

from itertools import chain, repeat
from typing import TYPE_CHECKING

from cse_core.hookspecs import hookimpl
from cse_core.loading import records_of_files
from cse_core.records import LossSpec, Paper, PerText, Reads, RecipeSpec, StudySpec
from cse_core.run_info import RunInfo

if TYPE_CHECKING:
    from cse_rankcse.options import TaughtOptions

PAPER = Paper("Liu et al.: RankCSE, ACL 2023", "cse_rankcse:paper.bib")


def _taught(options: TaughtOptions) -> tuple[tuple[str, str], ...]:
    views = ("anchor", options.target) if options.teacher_views == "both" else ("anchor",)
    names = () if options.scores else options.teachers
    return tuple((view, name) for name in names for view in (*views, *options.views))


def _needs(options: TaughtOptions) -> tuple[str, ...]:
    return () if options.scores else tuple(f"branch:{name}" for name in options.teachers)


def _scores(options: TaughtOptions) -> Reads:
    """Lay the columns beside their views, whose texts may be lists."""
    views = chain((options.target, *(options.views or ("negative",))), repeat(""))
    return {name: PerText("float", view) for name, view in zip(options.scores, views, strict=False)}


def _with_views(options: TaughtOptions, facts: RunInfo) -> TaughtOptions:
    """Name the views of negatives, and refuse scores that are not as many."""
    if options.candidates == "batch":
        return options
    negatives = tuple(name for name, view in facts.views.items() if view["role"] == "negative")
    views = options.views or negatives
    if options.scores and len(options.scores) != 1 + len(views):
        names = ", ".join((options.target, *views))
        raise ValueError(f"scores = {list(options.scores)}: one column each for {names}")
    return options.model_copy(update={"views": views})


def _teach_themselves(options: TaughtOptions, facts: RunInfo) -> list[str]:
    """Warn of teachers that are the model in training, as it starts."""
    if options.scores:
        return []
    models = {name: facts.branches.get(name, {}).get("model") for name in options.teachers}
    names = [name for name, model in models.items() if model == "self"]
    if not names:
        return []
    flags = " ".join(f"--branch.{name}.model MODEL" for name in names)
    return [f"{facts.model} teaches itself: {flags} names teachers"]


@hookimpl
def cse_losses() -> list[LossSpec]:
    """Return the losses."""
    taught = [
        LossSpec(
            name=name,
            summary=summary,
            factory=factory,
            options=options,
            requires=_needs,
            reads=_scores,
            encodes=_taught,
            resolve_options=_with_views,
            contrastive=False,
            plan_warnings=_teach_themselves,
            paper=PAPER,
        )
        for name, summary, factory, options in (
            ("list-net", "teachers' distributions over the batch, as lists",
             "cse_rankcse.teaching:ListNet", "cse_rankcse.options:TaughtOptions"),
            ("list-mle", "teachers' order of the batch",
             "cse_rankcse.teaching:ListMle", "cse_rankcse.options:ListMleOptions"),
        )
    ]  # fmt: skip
    return [
        *taught,
        LossSpec(
            name="ranking-consistency",
            summary="both views of a text rank the batch in one way",
            factory="cse_rankcse.consistency:RankingConsistency",
            options="cse_rankcse.options:ConsistencyOptions",
            contrastive=False,
            paper=PAPER,
        ),
    ]


@hookimpl
def cse_recipes() -> list[RecipeSpec]:
    """Return the recipes of both list losses."""
    return records_of_files(RecipeSpec, "cse_rankcse:recipes", paper=PAPER)


@hookimpl
def cse_studies() -> list[StudySpec]:
    """Return the comparison of the lists."""
    return records_of_files(StudySpec, "cse_rankcse:studies", prefix="rankcse/", paper=PAPER)
