"""A sentence and what stands around it."""

from __future__ import annotations

import torch

from cse_core.parts import RoundContext
from cse_infocse.options import InverseClozeOptions
from cse_infocse.starts import ContextStart


class InverseCloze(ContextStart):
    """Pairs of a sentence and the sentences around it, without it but for a share of the contexts.

    The inverse cloze task (Lee et al., 2019), whose passages are blocks; here the context is half
    of ``sentences`` before and the rest behind the sentence, in its document, more on one side
    where the other ends; or, without a number, the rest of the document.
    """

    options: InverseClozeOptions

    def kept(self, ctx: RoundContext, count: int) -> list[bool]:
        """Return whether each of the contexts keeps the sentence itself."""
        draws = torch.rand(count, generator=ctx.generator(f"{self.name} kept"))
        kept: list[bool] = (draws < self.options.keep).tolist()
        return kept

    def around(self, place: int, first: int, stop: int) -> range:
        """Return the sentences around a place."""
        most = self.options.sentences
        if most is None:
            return range(first, stop)
        begin = max(first, place - most // 2)
        end = min(stop, begin + most + 1)
        return range(max(first, end - most - 1), end)
