"""The records of DCLR; imports no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cse_core.hookspecs import hookimpl
from cse_core.loading import records_of_files
from cse_core.records import LossSpec, Paper, RecipeSpec, StoreSpec
from cse_core.run_info import RunInfo

if TYPE_CHECKING:
    from cse_dclr.options import DclrOptions, InstanceWeightsOptions, NoiseOptions

PAPER = Paper(
    "Zhou, Zhang, Zhao and Wen: Debiased Contrastive Learning, ACL 2022", "cse_dclr:paper.bib"
)


@hookimpl
def cse_negative_stores() -> list[StoreSpec]:
    """Return the noise and the weights."""
    return [
        StoreSpec(
            name="noise",
            summary="Gaussian vectors, new in each step, made harder by gradient ascent",
            factory="cse_dclr.noise:Noise",
            options="cse_dclr.options:NoiseOptions",
            encodes=_met_by_noise,
            plan_notes=_size_of_noise,
            paper=PAPER,
        ),
        StoreSpec(
            name="instance-weights",
            summary="removes negatives that a frozen second encoder finds too similar",
            factory="cse_dclr.instance_weights:InstanceWeights",
            options="cse_dclr.options:InstanceWeightsOptions",
            encodes=lambda options: tuple(dict.fromkeys(("anchor", options.view))),
            side=lambda options: (options.branch,) if options.stored else (),
            resolve_options=_of_one_text,
            plan_notes=_one_pass_would_do,
            plan_warnings=_judged_by_itself,
            paper=PAPER,
        ),
    ]


@hookimpl
def cse_losses() -> list[LossSpec]:
    """Return the loss."""
    return [
        LossSpec(
            name="dclr",
            summary="InfoNCE with weighted negatives, or the published binary cross entropy",
            factory="cse_dclr.loss:Dclr",
            options="cse_dclr.options:DclrOptions",
            plan_notes=_infonce_alone,
            paper=PAPER,
        )
    ]


@hookimpl
def cse_recipes() -> list[RecipeSpec]:
    """Return the recipe."""
    return records_of_files(RecipeSpec, "cse_dclr:recipes", paper=PAPER)


def _of_one_text(options: InstanceWeightsOptions, facts: RunInfo) -> InstanceWeightsOptions:
    """Refuse several positives of a text."""
    if facts.views.get(options.view, {}).get("lists") == "all":
        raise ValueError(f"reads one text of a row: views.{options.view}.lists = draw")
    return options


def _met_by_noise(options: NoiseOptions) -> tuple[str, ...]:
    """Return the views that the ascent looks at."""
    return ("anchor",) if options.objective == "noise" else ("anchor", options.view)


def _size_of_noise(options: NoiseOptions, facts: RunInfo) -> list[str]:
    """Say how far the ascent moves a vector beside its length."""
    if options.level != "sentence":
        return []
    batch = facts.step_rows or 1
    line = f"{int(batch * options.times)} vectors a step"
    moved = options.steps * options.step_size
    if moved and facts.hidden:
        share = moved / (options.deviation * facts.hidden**0.5)
        line += f", each moved by {share:.2g} of its length at most"
    return [line]


def _one_pass_would_do(options: InstanceWeightsOptions, facts: RunInfo) -> list[str]:
    """Say where the second encoder reads the same texts twice."""
    columns = [facts.views.get(name, {}).get("column") for name in ("anchor", options.view)]
    mode = facts.branches.get(options.branch or "", {}).get("mode")
    if options.view == "anchor" or mode != "eval" or columns[0] is None or columns[0] != columns[1]:
        return []
    return [
        f"anchor and {options.view} are one text: unless an augmenter changes it for branch "
        f"{options.branch}, view = anchor gives the same weights for one pass less"
    ]


def _infonce_alone(options: DclrOptions, facts: RunInfo) -> list[str]:
    """Say where nothing weighs negatives, so that the paper's loss is InfoNCE."""
    if options.variant != "paper" or any("phi" in store for store in facts.stores.values()):
        return []
    return ["without weights of negatives this is InfoNCE; add --negatives +instance-weights"]


def _judged_by_itself(options: InstanceWeightsOptions, facts: RunInfo) -> list[str]:
    """Warn where the second encoder is one that was never trained on sentences."""
    model = facts.branches.get(options.branch or "", {}).get("model")
    if model != "self" or options.center:
        return []
    return [
        f"branch {options.branch} is {facts.model}, unchanged; where that was not trained on "
        f"sentences, most cosines may be above phi = {options.phi:g}: NAME.removed in the log is "
        "the share of negatives taken out, and center = true lowers it"
    ]
