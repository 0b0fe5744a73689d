"""The records of the parts; imports no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cse_core.hookspecs import hookimpl
from cse_core.loading import records_of_files
from cse_core.records import LossSpec, Paper, RecipeSpec, StoreSpec, StudySpec
from cse_core.run_info import RunInfo

if TYPE_CHECKING:
    from cse_lists.options import DecayOptions, RankedOptions

SYNCSE = Paper(
    "Zhang, Lan and He: SynCSE, EMNLP 2023", "cse_lists:papers/zhang-etal-2023-contrastive.bib"
)
GCSE = Paper("Lai et al.: GCSE, ACL 2025", "cse_lists:papers/lai-etal-2025-enhancing.bib")
RANKED = Paper(
    "He et al.: Ranking Sentences Generation, Findings of ACL 2025",
    "cse_lists:papers/he-etal-2025-refining.bib",
)


def _is_itself(options: DecayOptions | RankedOptions, facts: RunInfo) -> list[str]:
    """Warn of a frozen model that is the one in training, as it starts."""
    name = getattr(options, "teacher", None) or getattr(options, "branch", "")
    if facts.branches.get(name, {}).get("model") != "self":
        return []
    return [f"branch {name} is {facts.model} itself: --branch.{name}.model MODEL names another"]


def _of_other_logits(options: DecayOptions, facts: RunInfo) -> list[str]:
    """Warn of a decay of logits that are not those of a loss."""
    lines = []
    for name, loss in facts.losses.items():
        if loss.get("negatives", "none") in ("none", "in-batch"):
            continue
        given = {key: loss[key] for key in ("temperature", "similarity") if key in loss}
        ours = {"temperature": options.temperature, "similarity": "cosine"}
        lines += [f"decays logits of {key} {ours[key]}, and loss.{name} has {value}"
                  for key, value in given.items() if value != ours[key]]  # fmt: skip
    return [*_is_itself(options, facts), *lines]


@hookimpl
def cse_negative_stores() -> list[StoreSpec]:
    """Return the decay of GCSE."""
    return [
        StoreSpec(
            name="gaussian-decay",
            summary="lessens hard negatives that are no less similar to a frozen model",
            factory="cse_lists.decay:GaussianDecay",
            options="cse_lists.options:DecayOptions",
            requires=lambda options: (f"view:{options.view}",),
            encodes=lambda options: ("anchor", options.view),
            plan_warnings=_of_other_logits,
            paper=GCSE,
        )
    ]


@hookimpl
def cse_losses() -> list[LossSpec]:
    """Return the loss of ranked lists."""
    return [
        LossSpec(
            name="ranked-sentences",
            summary="the order of each list, by a language model and a teacher",
            factory="cse_lists.ranked:RankedSentences",
            options="cse_lists.options:RankedOptions",
            requires=lambda options: (f"branch:{options.teacher}",),
            encodes=lambda options: (
                ("anchor", options.teacher),
                (options.target, options.teacher),
            ),
            contrastive=False,
            plan_warnings=_is_itself,
            paper=RANKED,
        )
    ]


@hookimpl
def cse_recipes() -> list[RecipeSpec]:
    """Return the recipe of each paper."""
    named = (("syncse", SYNCSE), ("gcse", GCSE), ("ranked-sentences", RANKED))
    return [
        record
        for name, paper in named
        for record in records_of_files(RecipeSpec, "cse_lists:recipes", name, paper=paper)
    ]


@hookimpl
def cse_studies() -> list[StudySpec]:
    """Return the comparison with the checkpoints of the authors."""
    return records_of_files(StudySpec, "cse_lists:studies", prefix="lists/", paper=SYNCSE)
