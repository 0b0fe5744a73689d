"""The records of the guide; imports no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cse_core.hookspecs import hookimpl
from cse_core.loading import records_of_files
from cse_core.records import Paper, RecipeSpec, StoreSpec
from cse_core.run_info import RunInfo

if TYPE_CHECKING:
    from cse_guide.options import GuideOptions

PAPER = Paper("Solatorio: GISTEmbed, 2024", "cse_guide:paper.bib")


def _encoded(options: GuideOptions) -> tuple[str, ...]:
    return tuple(dict.fromkeys(("anchor", options.view, *options.views)))


def _with_views(options: GuideOptions, facts: RunInfo) -> GuideOptions:
    """Name the views of hard negatives, and refuse several positives of a text."""
    if facts.views.get(options.view, {}).get("lists") == "all":
        raise ValueError(f"reads one text of a row: views.{options.view}.lists = draw")
    negatives = tuple(name for name, view in facts.views.items() if view["role"] == "negative")
    return options.model_copy(update={"views": options.views or negatives})


def _warnings(options: GuideOptions, facts: RunInfo) -> list[str]:
    """Warn of a positive that is the anchor's own text, and of a guide that is the model."""
    columns = [facts.views.get(name, {}).get("column") for name in ("anchor", options.view)]
    lines = []
    if columns[0] is not None and columns[0] == columns[1] and options.margin <= 0:
        lines.append(
            f"anchor and {options.view} are one text, so that nothing is more similar: "
            "margin = 0.1 removes what has a cosine above 0.9"
        )
    if facts.branches.get(str(options.branch), {}).get("model") == "self":
        line = f"its guide is {facts.model} itself: --branch.{options.branch}.model MODEL"
        lines.append(f"{line} names another")
    return lines


@hookimpl
def cse_negative_stores() -> list[StoreSpec]:
    """Return the store that weighs."""
    return [
        StoreSpec(
            name="guide",
            summary="removes negatives that a guide finds more similar than the positive",
            factory="cse_guide.guide:Guide",
            options="cse_guide.options:GuideOptions",
            encodes=_encoded,
            side=lambda options: (options.branch,) if options.stored else (),
            resolve_options=_with_views,
            plan_warnings=_warnings,
            paper=PAPER,
        )
    ]


@hookimpl
def cse_recipes() -> list[RecipeSpec]:
    """Return the recipe."""
    return records_of_files(RecipeSpec, "cse_guide:recipes", paper=PAPER)
