"""An augmenter that leaves frequent words out."""

from __future__ import annotations

from collections import Counter

import torch

from cse_adapter.options import FrequentWordsOptions
from cse_core.data.corpus import Corpus
from cse_core.parts import Augmenter, Setup
from cse_core.types import StepContext, TokenBatch, View


class FrequentWords(Augmenter):
    """Leaves a word of share f out with probability ``1 - sqrt(threshold / f)``, at most ``most``.

    The shares are those of the column ``text`` of the corpus. A text keeps one word at least.
    """

    def __init__(self, options: FrequentWordsOptions, setup: Setup) -> None:
        self.options = options
        self.name = setup.name
        self.share: dict[str, float] = {}

    def prepare(self, dataset: Corpus) -> None:
        counts = Counter(word for text in dataset.column("text") for word in text.lower().split())
        total = sum(counts.values())
        self.share = {word: count / total for word, count in counts.items()}

    def __call__(
        self, x: list[str], tokens: TokenBatch | None, view: View, ctx: StepContext
    ) -> list[str]:
        draws = ctx.generator(self.name, shared=False)
        return [self._shorten(text.split(), draws) for text in x]

    def _shorten(self, words: list[str], draws: torch.Generator) -> str:
        numbers = torch.rand(len(words), generator=draws, device=draws.device).tolist()
        kept = [w for w, n in zip(words, numbers, strict=True) if n >= self.probability(w)]
        return " ".join(kept or words[:1])

    def probability(self, word: str) -> float:
        share = self.share.get(word.lower(), 0.0)
        if share <= self.options.threshold:
            return 0.0
        return float(min(1 - (self.options.threshold / share) ** 0.5, self.options.most))
