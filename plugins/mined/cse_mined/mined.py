"""Hard negatives by the current model, between rounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cse_core.errors import CseError
from cse_core.functional import derive_seed, hashed_uniform, unit
from cse_core.parts import PositiveMiner, RoundContext, Setup
from cse_core.protocols import Column, Corpus
from cse_core.types import Round, ragged_index
from cse_mined.options import MinedOptions

AT_ONCE, BLOCK = 512, 16_384
"""Anchors that are searched for, and texts that are searched or encoded, at once."""


@dataclass(frozen=True)
class Texts:
    """U different texts: those that may be negatives first, behind them other anchors.

    Attributes:
        columns: Where they stand, and stay.
        first: ``[U]`` the first place of each in the columns, end to end.
        candidates: How many may be negatives.
        anchor: ``[A]`` which text each row's anchor is.
        positive: ``[A]`` which its positive is.
        known: Sorted ``anchor * U + text`` of texts that an anchor cannot have as negatives: its
            positives in any row, and itself.
    """

    columns: Sequence[Column]
    first: NDArray[np.int64]
    candidates: int
    anchor: Tensor
    positive: Tensor
    known: Tensor

    @staticmethod
    def of(corpus: Corpus, more: Sequence[Column]) -> Texts:
        """Number the texts of the rows, and more of them, by the hash of each."""
        anchors = corpus.column("text")
        others = [anchors] if "positive" in corpus.names else []
        columns = [corpus.column("positive") if others else anchors, *more, *others]
        count = sum(map(len, columns))
        hashes = np.fromiter((hash(text) for column in columns for text in column), np.int64, count)
        _, first, which = np.unique(hashes, return_index=True, return_inverse=True)
        number = np.empty_like(first)
        number[first.argsort()] = np.arange(len(first))
        places = torch.from_numpy(number[which])
        first.sort()
        candidates = int(np.searchsorted(first, count - sum(map(len, others))))
        positive = places[: len(anchors)]
        anchor = places[-len(anchors) :] if others else positive
        start = anchor * len(first)
        known = torch.unique(torch.cat([start + positive, start + anchor]))
        return Texts(columns, first, candidates, anchor, positive, known)

    def __len__(self) -> int:
        return len(self.first)

    def take(self, numbers: NDArray[np.int64]) -> list[str]:
        """Return the texts of these numbers."""
        places, start = self.first[numbers], 0
        texts: NDArray[np.object_] = np.empty(len(places), object)
        for column in self.columns:
            here = (places >= start) & (places < start + len(column))
            texts[here] = column.take(places[here] - start)
            start += len(column)
        return list(texts)


class Mined(PositiveMiner):
    """Rounds of rows of the data, each with a near text that is not its positive as a negative.

    Before each round the current model encodes all texts (ANCE, Xiong et al., 2021, Section 3: its
    index is refreshed while training goes on, here training waits). Of the ``depth`` nearest texts
    of an anchor, positives of the data, ``texts`` of a file or both, the first ``skip`` are left
    out, and those whose cosine is above the positive's less a margin (NV-Retriever, Moreira et al.,
    2024, Section 3.2: TopK-MarginPos is ``absolute``, TopK-PercPos ``relative``). Of the rest it
    takes the nearest, or draws, as ANCE does.

    Texts that any row has as a positive of the anchor's very text are never negatives. A row whose
    anchor has no negative is left out of the round. Without a column ``positive`` the text is its
    own positive. All vectors are in memory: U times D float32 numbers. Where no anchor has a
    negative any more, the rounds end.

    Raises:
        CseError: If no anchor has a negative in the first round.
    """

    options: MinedOptions
    remembers = ("mined",)

    def __init__(self, options: MinedOptions, setup: Setup) -> None:
        super().__init__(options, setup)
        self.mined = 0
        self.device = setup.device
        try:  # the plan could not know how many steps epochs of a source are
            self.every = options.steps_of(setup.total_steps)
        except ValueError as error:
            raise CseError(str(error), where=f"positives.{setup.name}") from None
        loaded = None if options.texts is None else setup.load_texts(options.texts)
        self.more = [] if loaded is None else [loaded.column("text")]

    def prepare(self, dataset: Corpus) -> None:
        """Number the distinct texts."""
        self._texts = Texts.of(dataset, self.more)

    def next_round(self, ctx: RoundContext) -> Round | None:
        """Return the next round with the negatives that the model finds now."""
        options = self.options
        if self.mined == options.rounds:
            return None
        self.mined += 1
        texts = self._texts
        vectors = self._encoded(texts, ctx)
        searched = self._rows(len(texts.anchor), ctx)
        negatives = ctx.shared(
            len(searched),
            lambda start, stop: self._negatives(texts, vectors, searched[start:stop], ctx),
            AT_ONCE,
        )
        which, places = (negatives >= 0).nonzero(as_tuple=True)
        rows = searched[which]
        if not len(rows) and self.mined > 1:
            self.mined = options.rounds
            return None
        if not len(rows):
            hint = "lower margin or skip, or raise depth"
            raise CseError(
                "no anchor has a text that is far enough below its positive",
                where=f"positives.{self.name}.margin",
                value=options.margin,
                hint=hint,
            )
        columns: dict[str, Any] = {"text": rows.numpy()}
        if "positive" not in ctx.corpus.names:
            columns["positive"] = rows.numpy()
        return Round(
            {**columns, "negative": texts.take(negatives[which, places].numpy())},
            train={"max_steps": self.every},
            keep_optimizer=True,
            keep_schedule=True,
        )

    def _rows(self, count: int, ctx: RoundContext) -> Tensor:
        """Select the rows to search for: all, or the round's share of a drawn order."""
        share = self.options.rows
        if share is None or share >= count:
            return torch.arange(count)
        seed = derive_seed(ctx.generator(self.name).initial_seed(), f"{self.name} rows")
        order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
        first = (self.mined - 1) * share
        return order[torch.arange(first, first + share) % count].sort().values

    def _encoded(self, texts: Texts, ctx: RoundContext) -> Tensor:
        """Return ``[U, D]`` vectors of length one."""
        vectors = torch.empty(0)
        for start in range(0, len(texts), BLOCK):
            stop = min(start + BLOCK, len(texts))
            some = unit(ctx.encode(texts.take(np.arange(start, stop))))
            if not start:  # all of them once: joined blocks would be there twice
                vectors = some.new_empty(len(texts), some.shape[1])
            vectors[start:stop] = some
            ctx.progress(stop, len(texts), f"{self.name}: texts encoded")
        return vectors

    def _negatives(
        self, texts: Texts, vectors: Tensor, searched: Tensor, ctx: RoundContext
    ) -> Tensor:
        """Return ``[R, number]`` texts that are negatives of ``[R]`` rows; -1 is none."""
        blocks = [torch.empty(0, self.options.number, dtype=torch.long)]
        seed = derive_seed(ctx.generator(self.name).initial_seed(), self.name)
        for first in range(0, len(searched), AT_ONCE):
            rows = searched[first : first + AT_ONCE]
            anchors, positives = texts.anchor[rows], texts.positive[rows]
            cos = (vectors[anchors] * vectors[positives]).sum(dim=1)
            scores, who = self._nearest(texts, vectors, anchors)
            options = self.options
            slack = cos.abs() * options.margin if options.strategy == "relative" else options.margin
            fine = (scores < (cos - slack).unsqueeze(1)) & (scores > -torch.inf)
            fine[:, : options.skip] = False
            rank = torch.arange(who.shape[1]).expand_as(who).float()
            if options.take == "drawn":
                rank = hashed_uniform(seed, rows.unsqueeze(1) * len(texts) + who)
            order = rank.masked_fill(~fine, torch.inf).argsort(dim=1, stable=True)
            order = order[:, : options.number]
            taken = who.gather(1, order).masked_fill(~fine.gather(1, order), -1)
            missing = taken.new_full((len(rows), options.number - taken.shape[1]), -1)
            blocks.append(torch.cat([taken, missing], dim=1))
            ctx.progress(first + len(rows), len(searched), f"{self.name}: anchors searched")
        return torch.cat(blocks)

    def _nearest(self, texts: Texts, vectors: Tensor, anchors: Tensor) -> tuple[Tensor, Tensor]:
        """Return ``[Q, depth]`` cosines and texts that may be negatives, the nearest first.

        Where there are fewer, the last cosines are minus infinity.
        """
        queries = vectors[anchors].to(self.device)
        best = queries.new_empty(len(anchors), 0)
        who = torch.empty(len(anchors), 0, dtype=torch.long, device=self.device)
        query, known = _known(texts, anchors)
        for start in range(0, texts.candidates, BLOCK):
            stop = min(start + BLOCK, texts.candidates)
            scores = queries @ vectors[start:stop].to(self.device).T
            here = (known >= start) & (known < stop)
            scores[query[here], known[here] - start] = -torch.inf
            near, order = scores.topk(min(self.options.depth, stop - start), dim=1)
            best, who = torch.cat([best, near], dim=1), torch.cat([who, order + start], dim=1)
            best, order = best.topk(min(self.options.depth, best.shape[1]), dim=1)
            who = who.gather(1, order)
        return best.cpu(), who.cpu()


def _known(texts: Texts, anchors: Tensor) -> tuple[Tensor, Tensor]:
    """Return ``[K]`` which of some anchors cannot have which text as a negative."""
    start, count = anchors * len(texts), len(texts)
    starts, stops = (torch.searchsorted(texts.known, bound) for bound in (start, start + count))
    index = ragged_index(starts, stops - starts)
    query = torch.arange(len(anchors)).repeat_interleave(stops - starts)
    return query, texts.known[index] % count
