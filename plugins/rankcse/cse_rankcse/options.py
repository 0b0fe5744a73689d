"""Options of RankCSE's losses."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from cse_core.options import LossOptions, Temperature


class BatchListOptions(LossOptions):
    """What each of the losses accepts: the list of a text is the batch's targets."""

    temperature: Temperature = 0.05
    """The model's similarities are divided by it."""
    level: Literal["sentence"] = "sentence"
    """Lists are of whole texts."""
    directions: Literal["one"] = "one"
    """A teacher ranks for anchors only; ranking-consistency compares both directions."""
    negatives: Literal["none"] = "none"
    """A list holds only positives and other texts of the batch."""


class ConsistencyOptions(BatchListOptions):
    """Options of ``ranking-consistency``."""

    variant: Literal["paper", "published"] = "paper"
    """paper: the Jensen-Shannon divergence; published: minus the mean entropy, which the public
    code computes for it and which flattens both distributions."""


class TaughtOptions(BatchListOptions):
    """What ``list-net`` and ``list-mle`` accept."""

    teachers: Annotated[tuple[str, ...], Field(min_length=1)] = ("frozen",)
    """Branches of the teachers, whose similarities are summed with their weights."""
    weights: tuple[float, ...] = ()
    """Weight of each teacher; by default all the same, with sum 1."""
    teacher_temperatures: Annotated[tuple[Temperature, ...], Field(min_length=1)] = (0.025,)
    """Their similarities are divided by it: one for all, or one for each."""
    teacher_views: Literal["both", "anchor"] = "both"
    """Texts that teachers read: anchors and targets, or only anchors, if targets are the same texts
    and teachers have no dropout."""
    own: bool = True
    """Whether a text's own positive is in its list."""
    candidates: Literal["batch", "list"] = "batch"
    """A text's list: the targets of the batch, or its own texts in the target's view and in
    ``views``."""
    views: tuple[str, ...] = ()
    """More views whose texts are in a list, by default the run's views of role negative; of the
    batch none."""
    scores: tuple[str, ...] = ()
    """Columns with scores of a text's own texts in place of teachers: those of the target's view,
    then of each of ``views``; beside lists of texts they hold lists."""
    best: Literal["highest", "lowest"] = "highest"
    """The first of a list has the highest score, or the lowest where scores are ranks."""

    @model_validator(mode="after")
    def _one_for_each_teacher(self) -> TaughtOptions:
        count = len(self.teachers)
        if self.weights and len(self.weights) != count:
            raise ValueError(f"weights: one for each of {count} teachers, not {len(self.weights)}")
        if len(self.teacher_temperatures) not in (1, count):
            raise ValueError(f"teacher_temperatures: one for all {count} teachers, or one for each")
        if "online" in self.teachers:
            raise ValueError("teachers: online is the model in training")
        if self.candidates == "batch" and (self.scores or self.views):
            raise ValueError("scores and views are of a text's own texts: candidates = list")
        if self.candidates == "list" and not self.own:
            raise ValueError("own = false leaves a text's own texts out, which are its list")
        if self.candidates == "list" and self.teacher_views == "anchor":
            raise ValueError("teachers read the texts of a list: teacher_views = both")
        return self


class ListMleOptions(TaughtOptions):
    """Options of ``list-mle``."""

    variant: Literal["paper", "published"] = "paper"
    """paper: the likelihood of the teachers' order; published: as the public code computes it, with
    1e-7 added inside the logarithm, and entries of the teachers of exactly -1 left out."""
