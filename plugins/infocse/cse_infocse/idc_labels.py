"""Clustering and labelled pairs in turn (InfoCSE++)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cse_core.parts import PositiveMiner, RoundContext, Setup
from cse_core.types import Round
from cse_infocse.idc import Idc
from cse_infocse.labels import Labels
from cse_infocse.options import IdcLabelsOptions
from cse_infocse.stopping import enough

Scores = Sequence[float | None]


class IdcLabels(PositiveMiner):
    """Stages of clustering and rounds of labels in turn, until the fine-tuned score stops growing.

    InfoCSE++ (InfoCSE, Section 3): clustering goes on until the dev score stops improving, the
    encoder is fine-tuned on labels, clusters the documents with what it has learnt, and so on; a
    stage of clustering is the last, too. Rounds of a stage are compared with each other, and rounds
    of labels with each other.
    """

    options: IdcLabelsOptions

    def __init__(self, options: IdcLabelsOptions, setup: Setup) -> None:
        self.options = options
        self.name = setup.name
        self.clusters = Idc(options, setup)
        self.labels = Labels(options, setup)
        self.before = 0
        self.tuned: list[int] = []

    def next_round(self, ctx: RoundContext) -> Round | None:
        """Return the next round of clusters or of labels, or None after the last stage."""
        mined = self.clusters.mined + self.labels.mined
        if not mined:
            self.before = len(ctx.scores)
        over, last = self._ended(ctx.scores[self.before :])
        if last and (over or not self.options.idc_after):
            return None
        if not over:
            return self.clusters.mine_round(ctx)
        self.tuned.append(mined)
        return self.labels.mine_round(ctx)

    def _ended(self, scores: Scores) -> tuple[bool, bool]:
        """Return whether the stage of clustering is over, and whether the turns are.

        Args:
            scores: Best dev score of each of its finished rounds.
        """
        options = self.options
        stage = scores[self.tuned[-1] + 1 if self.tuned else 0 :]
        of_labels = [scores[number] for number in self.tuned]
        return (
            enough(stage, options.idc_rounds, options.idc_patience),
            enough(of_labels, options.rounds, options.round_patience),
        )

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return which of its rounds were of labels, and what its miners remember."""
        return {
            "before": self.before,
            "tuned": list(self.tuned),
            "clusters": self.clusters.mined,
            **self.labels.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any], *args: Any, **kwargs: Any) -> None:
        """Restore what ``state_dict`` returned."""
        self.before, self.tuned = state["before"], list(state["tuned"])
        self.clusters.mined = state["clusters"]
        self.labels.load_state_dict(state)
