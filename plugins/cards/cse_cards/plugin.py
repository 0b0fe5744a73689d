"""The records of CARDS; imports no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cse_core.hookspecs import hookimpl
from cse_core.loading import records_of_files
from cse_core.records import AugmenterSpec, Paper, RecipeSpec, StoreSpec
from cse_core.run_info import RunInfo

if TYPE_CHECKING:
    from cse_cards.options import RetrievedOptions

PAPER = Paper("Wang, Ge, Zhang and Yang: CARDS, SIGIR 2022", "cse_cards:paper.bib")


@hookimpl
def cse_augmenters() -> list[AugmenterSpec]:
    """Return the switch of case."""
    return [
        AugmenterSpec(
            name="case-switch",
            summary="changes the case of words' first letters",
            factory="cse_cards.case_switch:CaseSwitch",
            options="cse_cards.options:CaseSwitchOptions",
            point="text",
            requires=("vocab:cased",),
            paper=PAPER,
        )
    ]


@hookimpl
def cse_negative_stores() -> list[StoreSpec]:
    """Return the retrieved negatives."""
    return [
        StoreSpec(
            name="retrieved",
            summary="corpus sentences similar to the batch's, encoded with gradient",
            factory="cse_cards.retrieved:Retrieved",
            options="cse_cards.options:RetrievedOptions",
            provides=lambda options: (f"view:{options.view}",),
            plan_notes=_index,
            paper=PAPER,
        )
    ]


@hookimpl
def cse_recipes() -> list[RecipeSpec]:
    """Return the recipe."""
    return records_of_files(RecipeSpec, "cse_cards:recipes", paper=PAPER)


def _index(options: RetrievedOptions, facts: RunInfo) -> list[str]:
    """Say what is searched by whom, and what that takes."""
    by = options.model or f"{facts.model}, unchanged"
    if options.refresh == "round":
        return ["texts of each round are searched before it, by the model as it would be saved"]
    rows = "all" if facts.rows is None else f"{facts.rows}"
    shown = [f"{rows} texts are encoded by {by} and searched once, before the first step"]
    positive = facts.views.get("positive", {}).get("column")
    if positive == "positive" and positive not in (facts.columns or ()):
        # Its pairs come in rounds: as rows of the data, or as texts that no search before knows.
        by = options.model or "the encoder as it is then"
        shown.append(f"texts that a round brings are searched by {by}, before that round")
    return shown
