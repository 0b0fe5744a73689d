"""What the miners of clusters have in common: rounds that the encoder itself mines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cse_core.parts import PositiveMiner, RoundContext, Setup
from cse_core.types import Round
from cse_infocse.annotator import SELF, Encode, named_annotator
from cse_infocse.options import ClusterOptions
from cse_infocse.pairs import PairCollector
from cse_infocse.stopping import enough


class Clusters(PositiveMiner):
    """A miner of pairs that share a cluster, mined in each round by the encoder as it is then.

    Rounds end when the dev score stops growing.

    Raises:
        CseError: If ``annotator`` is not a model.
    """

    options: ClusterOptions

    def __init__(self, options: ClusterOptions, setup: Setup) -> None:
        self.options = options
        self.name = setup.name
        self.where = f"positives.{setup.name}"
        self.mined = 0
        self.before = 0
        self._annotator: Encode | None = None
        if options.annotator != SELF:
            self._annotator = named_annotator(options.annotator, options.annotator_pool, setup)

    def next_round(self, ctx: RoundContext) -> Round | None:
        """Return the next round's pairs as corpus rows, with each pair's cluster, or None."""
        if not self.mined:
            self.before = len(ctx.scores)
        own = ctx.scores[self.before :]
        if enough(own, self.options.rounds, self.options.round_patience):
            return None
        return self.mine_round(ctx)

    def mine_round(self, ctx: RoundContext) -> Round:
        """Return the pairs that the current model's clusters give (the annotator's at first)."""
        encode = ctx.encode if self.mined or self._annotator is None else self._annotator
        self._annotator = None
        self.mined += 1
        text, positive, cluster = self.pairs(ctx, encode).distinct(ctx.corpus)
        return Round({"text": text, "positive": positive, "cluster": cluster})

    def pairs(self, ctx: RoundContext, encode: Encode) -> PairCollector:
        """Return the pairs of all documents: two sentences and their cluster's lowest, as rows."""
        raise NotImplementedError

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return how many rounds it asked for, and how many there were before."""
        return {"mined": self.mined, "before": self.before}

    def load_state_dict(self, state: Mapping[str, Any], *args: Any, **kwargs: Any) -> None:
        """Restore what ``state_dict`` returned."""
        self.mined, self.before = state["mined"], state["before"]
