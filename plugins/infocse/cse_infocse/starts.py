"""What the miners of weak positives have in common: one round, some pairs of each document."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
import torch

from cse_core.parts import PositiveMiner, RoundContext, Setup
from cse_core.types import Round
from cse_infocse.documents import Documents, Ints, documents_of
from cse_infocse.options import ContextOptions, InverseClozeOptions, NeighbourOptions, PairOptions
from cse_infocse.pairs import evenly, uniform

AT_ONCE = 20_000
"""Sentences or pairs whose texts are looked at together; no more of the corpus is held."""


class WeakStart(PositiveMiner):
    """A miner of one round whose pairs need no encoder."""

    options: PairOptions
    remembers = ("mined",)

    def __init__(self, options: PairOptions, setup: Setup) -> None:
        super().__init__(options, setup)
        self.where = f"positives.{setup.name}"
        self.mined = False

    def next_round(self, ctx: RoundContext) -> Round | None:
        """Return the round, then None."""
        if self.mined:
            return None
        self.mined = True
        return self.mine_round(ctx, documents_of(ctx.corpus, self.where))

    def mine_round(self, ctx: RoundContext, documents: Documents) -> Round:
        """Return the pairs."""
        raise NotImplementedError

    def chosen(self, ctx: RoundContext, document: Ints) -> Ints:
        """Return indexes ``[P]`` of candidates: so many a document and a round as are wanted.

        Args:
            ctx: The round.
            document: ``[C]`` document of each candidate, ascending.
        """
        draws = uniform(ctx.generator(f"{self.name} documents"))
        places = evenly(document, self.options.pairs_per_document, draws)
        most = self.options.pairs
        if most is None or len(places) <= most:
            return places
        drawing = ctx.generator(f"{self.name} pairs")
        order = torch.randperm(len(places), generator=drawing)[:most].numpy()
        return places[np.sort(order)]


class ContextStart(WeakStart):
    """Pairs of a sentence and a context of other sentences."""

    options: ContextOptions

    def __init__(self, options: ContextOptions, setup: Setup) -> None:
        super().__init__(options, setup)
        # The slice pooler ``sentences`` cuts at the bare token: a blank beside it would be a token
        # of its own where blanks are part of the vocabulary, as in RoBERTa's.
        self.between = " " if options.context == "joined" else setup.tokenizer.hf.sep_token

    def mine_round(self, ctx: RoundContext, documents: Documents) -> Round:
        """Return sentences and their contexts as texts, with their documents."""
        corpus, document = ctx.corpus, documents.document
        first = documents.offsets[:-1][document]
        stop = documents.offsets[1:][document]
        able = np.flatnonzero(self.has_context(np.arange(len(document)) - first))
        places = able[self.chosen(ctx, document[able])]
        kept = self.kept(ctx, len(places))
        column, numbers = corpus.column("text"), np.asarray(corpus.documents)
        texts: list[str] = []
        contexts: list[str] = []
        for begin in range(0, len(places), AT_ONCE):
            chosen = places[begin : begin + AT_ONCE].tolist()
            around = [self.around(place, int(first[place]), int(stop[place])) for place in chosen]
            needed = np.unique([*chosen, *chain.from_iterable(around)])
            sentences = dict(zip(needed.tolist(), column.take(documents.rows[needed]), strict=True))
            for place, near, keeps in zip(chosen, around, kept[begin:], strict=False):
                context = [i for i in near if i != place or keeps]
                texts.append(sentences[place])
                contexts.append(self.between.join(sentences[i] for i in context))
            ctx.progress(len(texts), len(places), f"contexts taken for round {ctx.round}")
        return Round(
            {"text": texts, "positive": contexts, "document": numbers[documents.rows[places]]}
        )

    def has_context(self, place: Ints) -> Any:
        """Return ``[S]`` whether a sentence at a place in its document has a context."""
        return place >= 0

    def kept(self, ctx: RoundContext, count: int) -> list[bool]:
        """Decide for each context whether it keeps the sentence itself."""
        return [False] * count

    def around(self, place: int, first: int, stop: int) -> range:
        """Return the context's sentences, of a document in ``[first, stop)``."""
        raise NotImplementedError


class InverseCloze(ContextStart):
    """Pairs of a sentence and the sentences around it, without it but for a share of the contexts.

    The inverse cloze task (Lee et al., 2019), whose passages are blocks; here the context is half
    of ``sentences`` before and the rest behind the sentence, in its document, more on one side
    where the other ends; or, without a number, the rest of the document.
    """

    options: InverseClozeOptions

    def kept(self, ctx: RoundContext, count: int) -> list[bool]:
        """Decide for each context whether it keeps the sentence itself."""
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


class PrecedingContext(ContextStart):
    """Pairs of a sentence and the sentences before it, as contrastive predictive coding has them.

    CPC (van den Oord et al., 2018) reads all that precedes by a recurrent net; here the context is
    the last sentences, or all of them, as one text that is cut, or the mean of their vectors.
    """

    def has_context(self, place: Ints) -> Any:
        """Return ``[S]`` whether a sentence is not its document's first."""
        return place > 0

    def around(self, place: int, first: int, stop: int) -> range:
        """Return the sentences before a place."""
        most = self.options.sentences
        return range(first if most is None else max(first, place - most), place)


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
