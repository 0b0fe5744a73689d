"""Spans of a document near each other as positives."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from cse_core.errors import CseError
from cse_core.parts import RoundContext, Setup
from cse_core.types import Round
from cse_infocse.documents import Documents, Ints
from cse_infocse.options import SpanOptions
from cse_infocse.starts import AT_ONCE, WeakStart


class Span(WeakStart):
    """Pairs of a span of words and spans that overlap, touch or lie in it.

    DeCLUTR (Giorgi et al., 2021): lengths of anchors from beta(4, 2), of positives from beta(2, 4),
    between the shortest and the longest; the positive is the mean of its spans' vectors, or each
    span is a pair of its own. A positive begins anywhere from its own length before its anchor to
    the anchor's end. DeCLUTR's code (declutr/common/contrastive_utils.py) cuts lengths to whole
    words, where they are rounded here; draws anchors that do not overlap, where each is drawn for
    itself here; and refuses documents of fewer words than ``2 * anchors * longest``, where a short
    document has shorter spans here.
    """

    options: SpanOptions

    def __init__(self, options: SpanOptions, setup: Setup) -> None:
        super().__init__(options, setup)
        self.between = setup.tokenizer.hf.sep_token if options.combine == "mean" else ""

    def mine_round(self, ctx: RoundContext, documents: Documents) -> Round:
        """Return the spans as texts, with their documents.

        Which pairs there will be is decided by the documents' lengths; then the chosen ones' words
        are read, some documents at a time. A document's spans depend on its place alone.
        """
        options = self.options
        drawing = ctx.generator(f"{self.name} spans")
        seed = int(torch.randint(2**62, (1,), generator=drawing))
        column, numbers = ctx.corpus.column("text"), np.asarray(ctx.corpus.documents)
        sizes = self._sizes(ctx, documents)
        longest = np.minimum(options.longest, sizes // 2)
        able = np.flatnonzero(longest >= options.shortest)
        if not len(able):
            raise CseError(
                f"no document has {2 * options.shortest} words",
                where=f"{self.where}.shortest",
                value=options.shortest,
                hint="take shorter spans, or longer documents",
            )
        near = 1 if options.combine == "mean" else options.positives
        candidate = np.repeat(able, options.anchors * near)
        chosen = self.chosen(ctx, np.repeat(np.arange(len(able)), options.anchors * near))
        owner, place = candidate[chosen], chosen % (options.anchors * near)
        texts: list[str] = []
        positives: list[str] = []
        for number, begin, end in _runs(owner):
            rows = documents.rows[documents.offsets[number] : documents.offsets[number + 1]]
            words = " ".join(column.take(rows)).split()
            draws = np.random.default_rng([seed, number])
            drawn = [
                _draw(draws, len(words), int(longest[number]), options)
                for _ in range(options.anchors)
            ]
            for which, other in (divmod(int(item), near) for item in place[begin:end]):
                anchor, *spans = drawn[which]
                parts = [" ".join(words[a:b]) for a, b in spans]
                texts.append(" ".join(words[slice(*anchor)]))
                positives.append(
                    self.between.join(parts) if options.combine == "mean" else parts[other]
                )
            if begin // AT_ONCE != end // AT_ONCE or end == len(owner):
                ctx.progress(end, len(owner), f"spans taken for round {ctx.round}")
        return Round(
            {
                "text": texts,
                "positive": positives,
                "document": numbers[documents.rows[documents.offsets[owner]]],
            }
        )

    def _sizes(self, ctx: RoundContext, documents: Documents) -> Ints:
        """Return ``[documents]`` how many words each has."""
        column = ctx.corpus.column("text")
        sizes = []
        for shard in documents.shards(AT_ONCE):
            words = np.array([len(text.split()) for text in column.take(shard.rows)])
            sizes.append(np.add.reduceat(words, shard.offsets[:-1]))
        return np.concatenate(sizes).astype(np.int64)


def _runs(owner: Ints) -> Iterator[tuple[int, int, int]]:
    """Yield each value of ascending ``[P]`` numbers with where it begins and ends."""
    values, begins = np.unique(owner, return_index=True)
    ends = [*begins[1:].tolist(), len(owner)]
    yield from zip(values.tolist(), begins.tolist(), ends, strict=True)


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
