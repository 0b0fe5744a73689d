"""Near sentences of a document as positives."""

from __future__ import annotations

import numpy as np

from cse_core.parts import RoundContext
from cse_core.types import Round
from cse_infocse.documents import Documents
from cse_infocse.options import NeighbourOptions
from cse_infocse.starts import WeakStart


class Neighbour(WeakStart):
    """Pairs of sentences at most ``distance`` apart: the start by CONPONO in simple form.

    CONPONO (Iter et al., 2020; cpc/model_builder.py) tells the eight sentences around one apart by
    eight heads and a margin to hard negatives; here all of them are positives of one loss over the
    batch, as InfoCSE's own rounds are.
    """

    options: NeighbourOptions

    def mine_round(self, ctx: RoundContext, documents: Documents) -> Round:
        """Return the pairs as corpus rows, the earlier sentence as the anchor."""
        document = documents.document
        steps = np.arange(1, self.options.distance + 1)
        one = np.repeat(np.arange(len(document)), len(steps))
        two = one + np.tile(steps, len(document))
        inside = two < len(document)
        inside[inside] = document[one[inside]] == document[two[inside]]
        one, two = one[inside], two[inside]
        chosen = self.chosen(ctx, document[one])
        rows = documents.rows
        return Round({"text": rows[one[chosen]], "positive": rows[two[chosen]]})
