"""The records of mined negatives; imports no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cse_core.hookspecs import hookimpl
from cse_core.loading import records_of_files
from cse_core.records import MinerSpec, Paper, RecipeSpec
from cse_core.run_info import RunInfo

if TYPE_CHECKING:
    from cse_mined.options import MinedOptions

PAPER = Paper(
    "Xiong et al.: ANCE, ICLR 2021; Moreira et al.: NV-Retriever, 2024", "cse_mined:paper.bib"
)


def _checked(options: MinedOptions, facts: RunInfo) -> MinedOptions:
    """Refuse rounds that need more steps than the run has."""
    options.steps_of(facts.steps)
    return options


def _notes(options: MinedOptions, facts: RunInfo) -> list[str]:
    """Say how many steps the rounds have together."""
    steps = options.steps_of(facts.steps)
    rounds = f"{options.rounds} round{'s' * (options.rounds > 1)}"
    return [f"{rounds} of {steps:,} steps, {options.rounds * steps:,} in all" if steps else rounds]


@hookimpl
def cse_positive_miners() -> list[MinerSpec]:
    """Return the miner."""
    return [
        MinerSpec(
            name="mined",
            summary="rounds with hard negatives that the model finds near to the anchors",
            factory="cse_mined.mined:Mined",
            options="cse_mined.options:MinedOptions",
            rounds=True,
            columns=("negative",),
            provides=("pairs",),
            resolve_options=_checked,
            plan_notes=_notes,
            paper=PAPER,
        )
    ]


@hookimpl
def cse_recipes() -> list[RecipeSpec]:
    """Return the recipe."""
    return records_of_files(RecipeSpec, "cse_mined:recipes", paper=PAPER)
