"""Clustering and labelled pairs in turn (InfoCSE++)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cse_core.parts import PositiveMiner, RoundContext, Setup
from cse_core.types import Round
from cse_infocse.idc import Idc
from cse_infocse.labels import Labels
from cse_infocse.options import IdcLabelsOptions
from cse_infocse.stopping import enough


class IdcLabels(PositiveMiner):
    """Rounds of clusters and a round of labels in turn, until the fine-tuned score stops growing.

    InfoCSE++ (InfoCSE, Section 3): the fine-tuned encoder clusters the documents anew and goes on
    from there. Only rounds of labels are compared.
    """

    options: IdcLabelsOptions

    def __init__(self, options: IdcLabelsOptions, setup: Setup) -> None:
        self.options = options
        self.name = setup.name
        self.clusters = Idc(options, setup)
        self.labels = Labels(options, setup)
        self.before = 0

    def next_round(self, ctx: RoundContext) -> Round | None:
        """Return the next round of the turn, or None after the last turn."""
        mined = self.clusters.mined + self.labels.mined
        if not mined:
            self.before = len(ctx.scores)
        turns, place = divmod(mined, self.options.idc_rounds + 1)
        if place == self.options.idc_rounds:
            return self.labels.mine_round(ctx)
        tuned = ctx.scores[self.before :][self.options.idc_rounds :: self.options.idc_rounds + 1]
        if place == 0 and enough(tuned[:turns], self.options.rounds, self.options.round_patience):
            return None
        return self.clusters.mine_round(ctx)

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return its rounds of each kind, how many there were before, and the labels' sha256."""
        labels = self.labels.state_dict()
        return {
            "before": self.before,
            "clusters": self.clusters.mined,
            "labels": labels["mined"],
            "digest": labels["digest"],
        }

    def load_state_dict(self, state: Mapping[str, Any], *args: Any, **kwargs: Any) -> None:
        """Restore what ``state_dict`` returned."""
        self.before = state["before"]
        self.clusters.mined = state["clusters"]
        self.labels.load_state_dict({"mined": state["labels"], "digest": state.get("digest", "")})
