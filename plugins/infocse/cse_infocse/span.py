"""Spans of a document near each other as positives."""

from __future__ import annotations

import numpy as np
import torch

from cse_core.errors import CseError
from cse_core.protocols import RoundContext, Setup
from cse_core.types import Round
from cse_infocse.documents import Documents
from cse_infocse.options import SpanOptions
from cse_infocse.starts import WeakStart, separator


class Span(WeakStart):
    """Pairs of a span of words and spans that overlap, touch or lie in it.

    DeCLUTR (Giorgi et al., 2021): lengths of anchors from beta(4, 2), of positives from beta(2, 4),
    between the shortest and the longest; the positive is the mean of its spans' vectors, or each
    span is a pair of its own. Its code counts sub-words and refuses documents shorter than
    ``2 * anchors * longest``; here words are counted, and a short document has shorter spans.
    """

    options: SpanOptions

    def __init__(self, options: SpanOptions, setup: Setup) -> None:
        super().__init__(options, setup)
        self.between = separator(setup, self.where) if options.combine == "mean" else ""

    def mine_round(self, ctx: RoundContext, documents: Documents) -> Round:
        """Return the spans as texts, with their documents."""
        options = self.options
        drawing = ctx.generator(f"{self.name} spans")
        draws = np.random.default_rng(int(torch.randint(2**62, (1,), generator=drawing)))
        column, numbers = ctx.corpus.column("text"), np.asarray(ctx.corpus.documents)
        texts: list[str] = []
        positives: list[str] = []
        own: list[int] = []
        for number, (first, stop) in enumerate(
            zip(documents.offsets[:-1], documents.offsets[1:], strict=True)
        ):
            rows = documents.rows[first:stop]
            words = " ".join(column.take(rows)).split()
            longest = min(options.longest, len(words) // 2)
            if longest < options.shortest:
                continue
            for _ in range(options.anchors):
                anchor, *spans = _draw(draws, len(words), longest, options)
                near = [" ".join(words[a:b]) for a, b in spans]
                near = [self.between.join(near)] if options.combine == "mean" else near
                texts += [" ".join(words[slice(*anchor)])] * len(near)
                positives += near
                own += [number] * len(near)
        if not texts:
            raise CseError(
                f"no document has {2 * options.shortest} words",
                where=f"{self.where}.shortest",
                value=options.shortest,
                hint="take shorter spans, or longer documents",
            )
        document = np.asarray(own)
        _, compact = np.unique(document, return_inverse=True)
        chosen = self.chosen(ctx, compact)
        return Round(
            {
                "text": [texts[i] for i in chosen.tolist()],
                "positive": [positives[i] for i in chosen.tolist()],
                "document": numbers[documents.rows[documents.offsets[document[chosen]]]],
            }
        )


def _draw(
    draws: np.random.Generator, words: int, longest: int, options: SpanOptions
) -> list[tuple[int, int]]:
    """Return an anchor and its positives as ``[begin, end)`` in a document of so many words."""

    def length(a: float, b: float) -> int:
        return options.shortest + int(draws.beta(a, b) * (longest - options.shortest) + 0.5)

    size = length(4, 2)
    begin = int(draws.integers(0, words - size + 1))
    spans = [(begin, begin + size)]
    for _ in range(options.positives):
        near = length(2, 4)
        low, high = max(0, begin - near), min(words - near, begin + size)
        start = int(draws.integers(low, high + 1))
        spans.append((start, start + near))
    return spans
