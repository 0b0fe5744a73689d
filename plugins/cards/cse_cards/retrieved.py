"""Negatives retrieved from the corpus."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cse_cards.approximate import QUERIES, FaissIndex, nearest, through_faiss
from cse_cards.options import RetrievedOptions
from cse_core.errors import CseError
from cse_core.functional import places_of, unit
from cse_core.parts import NegativeStore, RoundContext, Setup
from cse_core.protocols import Corpus, Rows, Tokenizer
from cse_core.types import Batch, Negatives, StepContext, TokenBatch, View

Encode = Callable[..., Tensor]
_ENCODED_AT_ONCE = 8192
IN_MEMORY = 2**30
"""Bytes of vectors beyond which they lie in a file that is mapped into memory."""


class RoundTexts:
    """The distinct texts of the corpus, or of a round that brings its own.

    Attributes:
        longest: Tokens of a row at most.
        distinct: ``[U]`` int64, in order: the first place of each text among the round's keys.
    """

    def __init__(self, rows: Rows, corpus: Corpus) -> None:
        self.longest = rows.longest
        self.first, self.text_ids = rows.keys.first, rows.keys.text_ids
        self.distinct = torch.unique(self.text_ids)
        # Rows of a round that are numbers of corpus rows are not in the order of its keys.
        mined = None if rows.pairs is None else rows.pairs["text"]
        in_order = not isinstance(mined, np.ndarray)
        self._content = rows.content if in_order else None
        self._texts = rows.texts if in_order else None
        self._corpus = corpus

    def __len__(self) -> int:
        """Return U."""
        return len(self.distinct)

    def numbers(self, rows: Tensor) -> Tensor:
        """Return the numbers, among the U texts, of rows ``[B]`` of the round."""
        return torch.searchsorted(self.distinct, self.text_ids[rows - self.first])

    def texts(self, numbers: Tensor) -> list[str]:
        """Return some of the U texts."""
        places = self.distinct[numbers]
        if self._texts is not None:
            return self._texts("text", places)
        return self._corpus.column("text").take(places.numpy())

    def tokens(self, numbers: Tensor, tokenizer: Tokenizer) -> TokenBatch | None:
        """Return some of the U texts as content tokens, where they are tokenised already."""
        if self._content is None:
            return None
        return self._content("text", self.distinct[numbers], tokenizer)


class Retrieved(NegativeStore):
    """Adds sentences of the corpus that are near to the batch's, as negatives of all anchors.

    CARDS, retrieved negatives: before training every text is encoded by an encoder, by default the
    run's own as it starts with mean pooling, and its ``knn - 1`` most similar other texts by cosine
    are noted. In each step ``take`` of them are drawn for each sentence and encoded with gradient,
    as a view of role negative: they are columns of every anchor (of their own alone where they are
    not ``shared``), where a column with the anchor's very text is masked. Equal texts count once,
    so no text is its own neighbour; the authors remove doubles from the corpus first.

    What is kept is the table of neighbours, ``[texts, knn - 1]``: a resumed run does not search
    again. Texts that a round brings are in no table made before it; they are searched before that
    round, by the named encoder or the run's own as it is then, however ``refresh`` is set.
    """

    def __init__(self, options: RetrievedOptions, setup: Setup) -> None:
        super().__init__(options, setup)
        self.setup = setup
        self.where = f"negatives.{setup.name}.index"
        through_faiss(options.index, 0, self.where)  # before anything is encoded
        self.named = None if options.model is None else self._encoder()
        self.near: Tensor | None = None
        self.searched = -1
        self.first = 0
        self.known: RoundTexts | None = None

    def begin_round(self, rows: Rows, ctx: RoundContext) -> None:
        """Find the neighbours of the round's texts, where they are not found yet.

        A static table holds the texts of the corpus; those that a round brings are searched before
        it, and those of the corpus again after it.

        Raises:
            CseError: If there is one text only.
        """
        known = RoundTexts(rows, ctx.corpus)
        again = self.options.refresh == "round" and self.searched != ctx.round
        if self.near is None or again or self.first != known.first:
            self.near = self._search(known, ctx)
            self.searched, self.first = ctx.round, known.first
        self.known, self.named = known, None

    def views(self, rows: Tensor, ctx: StepContext) -> list[View]:
        """Return the view of the sentences drawn for each of the rows."""
        if self.known is None:
            raise RuntimeError(f"{self.name} was not given the rows of the round")
        drawn = self._drawn(ctx)
        numbers = drawn[places_of(rows, ctx.rows)].flatten()
        return [
            View(
                self.options.view,
                "negative",
                "online",
                texts=self.known.texts(numbers),
                tokens=self.known.tokens(numbers, self.setup.tokenizer),
                owner=torch.arange(len(rows)).repeat_interleave(drawn.shape[1]),
            )
        ]

    def weigh(self, negatives: Negatives, batch: Batch, ctx: StepContext) -> Negatives:
        """Mask columns with the anchor's own text, and others' where columns are not shared.

        The weight is added at the anchor's own columns.
        """
        if self.known is None or not any(name == self.options.view for name, _ in negatives.blocks):
            return negatives
        device = batch.anchors.device
        number, drawn = (
            item.to(device, non_blocking=True)
            for item in (self.known.numbers(ctx.rows.cpu()), self._drawn(ctx))
        )
        view = batch.views[self.options.view][batch.level]
        retrieved = drawn[view.owner, view.text]
        same = number[batch.owner].unsqueeze(1) == retrieved.unsqueeze(0)
        mask, log_weights = negatives.mask.clone(), negatives.log_weights.clone()
        for name, block in negatives.spans():
            if name == self.options.view:
                mask[:, block] |= same
                mine = batch.owner.unsqueeze(1) == view.owner.unsqueeze(0)
                if not self.options.shared:
                    mask[:, block] |= ~mine
                log_weights[:, block] += mine.to(log_weights) * self.options.weight
        return replace(negatives, mask=mask, log_weights=log_weights)

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return the table of neighbours ``[texts, knn - 1]``, its round and its first row."""
        if self.near is None:
            return {"searched": -1}
        return {"searched": self.searched, "first": self.first, "near": self.near}

    def load_state_dict(self, state: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Restore the table."""
        self.searched = int(state["searched"])
        self.first = int(state.get("first", 0))
        self.near = state["near"].cpu() if self.searched >= 0 else None

    def _drawn(self, ctx: StepContext) -> Tensor:
        """Return ``[B, take]`` which texts are drawn for the rows of the batch, one draw a row."""
        if self.known is None or self.near is None:
            raise RuntimeError(f"{self.name} has no neighbours to draw from")
        near = self.near[:, self.options.skip :]
        width = near.shape[1]
        draws = torch.rand(len(ctx.rows), width, generator=ctx.generator(f"{self.name}.draw"))
        chosen = draws.topk(min(self.options.take, width), dim=1).indices
        rows = ctx.rows.cpu()
        return near[self.known.numbers(rows)].gather(1, chosen).long()[places_of(rows, rows)]

    def _search(self, known: RoundTexts, ctx: RoundContext) -> Tensor:
        """Return ``[U, width]`` int32 neighbours of each text."""
        skip = self.options.skip
        if len(known) < 2 + skip:
            what = "only one text, so there is nothing to retrieve"
            if skip:
                what = f"{len(known)} distinct texts: none is left to retrieve after {skip}"
            raise CseError(
                f"the data has {what}",
                where=f"negatives.{self.name}",
                hint="use more sentences" + (", or lower skip" if skip else ""),
            )
        encode: Encode = ctx.encode
        if self.options.refresh != "round":
            encode = partial(self.named or self._encoder(), longest=known.longest)
        numbers = torch.split(torch.arange(len(known)), _ENCODED_AT_ONCE)
        first = encode(known.texts(numbers[0]))
        with room(len(known), first.shape[1]) as vectors:
            done = 0
            for part in numbers:
                rows = encode(known.texts(part)) if done else first
                if not bool(rows.isfinite().all()):
                    raise CseError(
                        "the encoder returns vectors that are not finite, which have no neighbours",
                        where=f"negatives.{self.name}.model",
                        value=self.options.model,
                        hint="name another encoder, or train in fp32 or with a lower train.lr",
                    )
                vectors[done : done + len(part)] = unit(rows)
                done += len(part)
                ctx.progress(done, len(known), f"{self.name}: texts encoded")
            return self._nearest(vectors, ctx)

    def _nearest(self, vectors: Tensor, ctx: RoundContext) -> Tensor:
        """Return ``[U, width]`` int32 neighbours; processes share the texts that are searched for.

        Each searches for some of the blocks that one process does, so that the result is the same.
        """
        texts = len(vectors)
        count = min(self.options.knn, texts) - 1
        what = f"{self.name}: texts searched"
        if not through_faiss(self.options.index, texts, self.where):
            return ctx.shared(
                texts,
                lambda start, stop: nearest(
                    vectors,
                    vectors[start:stop],
                    count,
                    torch.arange(start, stop),
                    device=self.setup.device,
                    progress=lambda done, of: ctx.progress(done, of, what),
                ),
                QUERIES,
            )
        array, places = vectors.numpy(), np.arange(texts)
        index = FaissIndex(array, count)

        def searched(start: int, stop: int) -> Tensor:
            rows = [np.empty((0, count), np.int32)]
            for first in range(start, stop, QUERIES):
                some = slice(first, min(first + QUERIES, stop))
                rows.append(index.search(array[some], count, places[some]).astype(np.int32))
                ctx.progress(some.stop - start, stop - start, f"{what} ({index.report})")
            return torch.from_numpy(np.concatenate(rows))

        return ctx.shared(texts, searched, QUERIES)

    def _encoder(self) -> Encode:
        """Return a function that encodes with the named encoder, or with the run's current one."""
        return self.setup.load_model(self.options.model, self.options.pool).encode


@contextmanager
def room(rows: int, dimension: int, limit: int = IN_MEMORY) -> Iterator[Tensor]:
    """Give room for ``[rows, dimension]`` float32 vectors: memory, or a temporary file beyond it.

    Args:
        rows: How many.
        dimension: Of each.
        limit: Bytes that may be in memory.
    """
    if rows * dimension * 4 <= limit:
        yield torch.empty(rows, dimension)
        return
    with tempfile.TemporaryDirectory(prefix="cse-vectors-") as folder:
        size = rows * dimension
        flat = torch.from_file(str(Path(folder) / "vectors"), shared=True, size=size)
        yield flat.view(rows, dimension)
