"""The data that parts pass to each other in a step; tokens are ragged, no part sees padding."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cse_core.composition import Role

SENTENCE = "sentence"
"""The level of whole rows of the data; others are named by the slicing part."""
INPUT = "input"
"""The level of mean input embeddings, built only when a part requires it."""


@dataclass(frozen=True)
class TokenBatch:
    """Rows of tokens lying end to end.

    ``offsets`` stays on the CPU wherever the rest is, so that no row arithmetic waits for a GPU.

    Attributes:
        ids: ``[T]`` vocabulary ids.
        positions: ``[T]`` index inside the row; a part may permute them.
        source: ``[T]`` index in the sentence's own tokenisation; -1 for special and prompt tokens;
            a doubled token keeps it.
        word: ``[T]`` index of the word; -1 as above.
        special: ``[T]`` bool, special and prompt tokens.
        offsets: ``[R + 1]`` where each row begins; the last is T.
        owner: ``[R]`` batch row of the sentence that a row belongs to.
        slot: ``[R]`` which row of its sentence it is (segment number).
    """

    ids: Tensor
    positions: Tensor
    source: Tensor
    word: Tensor
    special: Tensor
    offsets: Tensor
    owner: Tensor
    slot: Tensor

    @property
    def rows(self) -> int:
        """Return the number of rows."""
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Tensor:
        """Return ``[R]`` tokens of each row, on the CPU."""
        return self.offsets[1:] - self.offsets[:-1]

    def row_of_token(self) -> Tensor:
        """Return ``[T]`` the row of each token, on the device of the ids."""
        rows = torch.repeat_interleave(torch.arange(self.rows), self.lengths)
        return rows.to(self.ids.device, non_blocking=True)

    def content_lengths(self) -> Tensor:
        """Return ``[R]`` tokens of each row that are not special, on the device of the ids."""
        counts = torch.zeros(self.rows, dtype=torch.long, device=self.ids.device)
        return counts.index_add_(0, self.row_of_token(), (~self.special).long())

    def to(self, device: torch.device) -> TokenBatch:
        """Return the batch on a device; the offsets stay on the CPU."""
        moved = {
            name: getattr(self, name).to(device, non_blocking=True)
            for name in ("ids", "positions", "source", "word", "special", "owner", "slot")
        }
        return replace(self, **moved)

    def take_tokens(self, index: Tensor, lengths: Tensor) -> TokenBatch:
        """Return the tokens at ``index`` as rows of ``lengths``; positions count anew.

        Args:
            index: ``[T']`` indexes into the tokens, ordered by row.
            lengths: ``[R]`` tokens that each row has then; a row may be empty.
        """
        offsets = offsets_of(lengths)
        return replace(
            self,
            ids=self.ids[index],
            positions=positions_of(offsets).to(self.ids.device),
            source=self.source[index],
            word=self.word[index],
            special=self.special[index],
            offsets=offsets,
        )

    def keep_tokens(self, keep: Tensor) -> TokenBatch:
        """Return only the tokens marked in ``keep`` (``[T]`` bool); positions count anew."""
        kept = torch.zeros(self.rows, dtype=torch.long)
        kept.index_add_(0, self.row_of_token().cpu(), keep.long().cpu())
        return self.take_tokens(keep.nonzero().squeeze(1), kept)

    def take_rows(self, index: Tensor) -> TokenBatch:
        """Return the rows at ``index`` (``[R']``, CPU), in that order."""
        lengths = self.lengths[index]
        tokens = ragged_index(self.offsets[:-1][index], lengths)
        offsets = offsets_of(lengths)
        return TokenBatch(
            ids=self.ids[tokens],
            positions=self.positions[tokens],
            source=self.source[tokens],
            word=self.word[tokens],
            special=self.special[tokens],
            offsets=offsets,
            owner=self.owner[index],
            slot=self.slot[index],
        )

    @staticmethod
    def join(batches: Sequence[TokenBatch]) -> TokenBatch:
        """Lay several batches end to end; owners and slots stay as they are."""
        if len(batches) == 1:
            return batches[0]
        joined = {
            name: torch.cat([getattr(batch, name) for batch in batches])
            for name in ("ids", "positions", "source", "word", "special", "owner", "slot")
        }
        lengths = torch.cat([batch.lengths for batch in batches])
        return TokenBatch(offsets=offsets_of(lengths), **joined)


def offsets_of(lengths: Tensor) -> Tensor:
    """Return ``[R + 1]`` offsets of rows of these lengths, on the CPU."""
    offsets = torch.zeros(len(lengths) + 1, dtype=torch.long)
    torch.cumsum(lengths.cpu(), 0, out=offsets[1:])
    return offsets


def positions_of(offsets: Tensor) -> Tensor:
    """Return ``[T]`` the index of each token inside its row."""
    lengths = offsets[1:] - offsets[:-1]
    starts = torch.repeat_interleave(offsets[:-1], lengths)
    return torch.arange(int(offsets[-1])) - starts


def ragged_index(starts: Tensor, lengths: Tensor) -> Tensor:
    """Return the indexes ``start, start + 1, …`` of each row, end to end."""
    offsets = offsets_of(lengths)
    return positions_of(offsets) + torch.repeat_interleave(starts, lengths)


@dataclass(frozen=True)
class View:
    """One reading of the batch's sentences: which texts or tokens, and which branch encodes them.

    Attributes:
        texts: One text for each row, or None where ``tokens`` is given.
        tokens: Content tokens (no special tokens), or None where ``texts`` is given.
        owner: ``[R]`` batch row of each text; by default one text for each sentence in order.
    """

    name: str
    role: Role
    branch: str
    texts: Sequence[str] | None = None
    tokens: TokenBatch | None = None
    owner: Tensor | None = None


@dataclass(frozen=True)
class Embeddings:
    """Vectors of a level with their row keys.

    Attributes:
        vectors: ``[N, D]``.
        owner: ``[N]`` batch row of the sentence.
        slot: ``[N]`` which row of its sentence.
        length: ``[N]`` content tokens behind each vector.
    """

    vectors: Tensor
    owner: Tensor
    slot: Tensor
    length: Tensor

    def __len__(self) -> int:
        """Return N."""
        return len(self.owner)

    def detach(self) -> Embeddings:
        """Return the same without gradient."""
        return replace(self, vectors=self.vectors.detach())

    def take(self, index: Tensor) -> Embeddings:
        """Return the rows at ``index``."""
        return Embeddings(
            self.vectors[index], self.owner[index], self.slot[index], self.length[index]
        )


@dataclass(frozen=True)
class Positives:
    """Positives of every anchor.

    Attributes:
        vectors: ``[A, P, D]``.
        weights: ``[A, P]``, zero where an anchor has fewer than P; None where all count alike.
    """

    vectors: Tensor
    weights: Tensor | None = None


@dataclass(frozen=True)
class Negatives:
    """Negatives, which every anchor sees or not.

    Attributes:
        vectors: ``[N, D]``.
        mask: ``[A, N]`` bool; True is not a negative of that anchor.
        log_weights: ``[A, N]`` added to logits; minus infinity is weight zero.
        row: ``[N]`` corpus row that it came from, -1 for none.
        age: ``[N]`` steps since it was stored; 0 in the batch.
        blocks: Where the columns come from, in order: ``("in-batch", 63), ("queue", 512)``.
    """

    vectors: Tensor
    mask: Tensor
    log_weights: Tensor
    row: Tensor
    age: Tensor
    blocks: tuple[tuple[str, int], ...] = ()

    def __len__(self) -> int:
        """Return N."""
        return len(self.row)

    @staticmethod
    def of(
        vectors: Tensor,
        anchors: int,
        *,
        name: str,
        mask: Tensor | None = None,
        log_weights: Tensor | None = None,
        row: Tensor | None = None,
        age: Tensor | None = None,
    ) -> Negatives:
        """Make negatives of ``[N, D]`` vectors; what is left out masks nothing, weighs nothing."""
        count, device = len(vectors), vectors.device
        shape = (anchors, count)
        return Negatives(
            vectors=vectors,
            mask=torch.zeros(shape, dtype=torch.bool, device=device) if mask is None else mask,
            log_weights=torch.zeros(shape, device=device, dtype=vectors.dtype)
            if log_weights is None
            else log_weights,
            row=torch.full((count,), -1, device=device) if row is None else row,
            age=torch.zeros(count, dtype=torch.long, device=device) if age is None else age,
            blocks=((name, count),),
        )

    @staticmethod
    def join(several: Sequence[Negatives]) -> Negatives:
        """Put negatives side by side."""
        if len(several) == 1:
            return several[0]
        return Negatives(
            vectors=torch.cat([each.vectors for each in several]),
            mask=torch.cat([each.mask for each in several], dim=1),
            log_weights=torch.cat([each.log_weights for each in several], dim=1),
            row=torch.cat([each.row for each in several]),
            age=torch.cat([each.age for each in several]),
            blocks=tuple(block for each in several for block in each.blocks),
        )


@dataclass(frozen=True)
class CorpusKeys:
    """What the core knows of every corpus row, for masks.

    Attributes:
        documents: ``[rows]`` document number, -1 for none.
        text_ids: ``[rows]`` first row with the same text.
    """

    documents: Tensor
    text_ids: Tensor


@dataclass(frozen=True)
class Batch:
    """A batch at one level, as miners, stores and losses see it.

    Attributes:
        rows: ``[B]`` corpus rows of the sentences, over all processes.
        level: Name of the level.
        anchors: ``[A, D]``.
        owner: ``[A]`` batch row of each anchor.
        slot: ``[A]`` which row of its sentence each anchor is.
        targets: Groups of positives by name, ``[A, P, D]`` each.
        stored: Candidates of each store by instance name.
        views: Embeddings by view and level, unmatched rows too.
        roles: Role of each view.
        corpus: Keys of all corpus rows.
    """

    rows: Tensor
    level: str
    anchors: Tensor
    owner: Tensor
    slot: Tensor
    targets: Mapping[str, Positives]
    stored: Mapping[str, Negatives]
    views: Mapping[str, Mapping[str, Embeddings]]
    roles: Mapping[str, Role]
    corpus: CorpusKeys

    @property
    def row(self) -> Tensor:
        """Return ``[A]`` the corpus row of each anchor."""
        return self.rows[self.owner]


@dataclass(frozen=True)
class LossOutput:
    """A loss.

    Attributes:
        value: Scalar.
        parts: Named scalars for the log.
    """

    value: Tensor
    parts: Mapping[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class Round:
    """A round of training that a miner asks for.

    Attributes:
        pairs: Columns of the round's rows. ``text`` and ``positive`` (others where parts want
            them), each a list of texts, or an integer array of corpus rows.
        losses: Names of the losses of this round; None is all.
        train: Overrides of ``train.*``.
        score: Dev score that picks the round's checkpoint; None is ``train.select``.
        patience: Evaluations without a better score after which the round ends.
        keep_optimizer: Whether the optimiser's moments go on.
    """

    pairs: Mapping[str, Sequence[str] | np.ndarray[Any, Any]]
    losses: tuple[str, ...] | None = None
    train: Mapping[str, object] = field(default_factory=dict)
    score: str | None = None
    patience: int | None = None
    keep_optimizer: bool = False


@dataclass(frozen=True)
class StepContext:
    """What a part may ask for in a step.

    Attributes:
        step: Optimiser steps of this round that are done.
        total_steps: Optimiser steps of this round.
        rows: ``[B]`` corpus rows of the batch, over all processes.
        generator: ``generator(name)`` is a new generator at each call, the same for the same name,
            step and seed; ``generator(name, shared=False)`` differs between processes.
        vectors: ``vectors(view, branch)`` are a view's Embeddings by level, without gradient.
        gradient: ``gradient(view, tokens)`` is ``[T, E]``, the gradient of the objective for the
            inputs of a view, or None where there is none (yet).
        texts: ``texts(column)`` are the batch's texts of a column.
        log: ``log(name, value)`` notes a scalar for metrics.jsonl without waiting for it.
    """

    step: int
    total_steps: int
    epoch: int
    round: int
    rows: Tensor
    device: torch.device
    generator: Callable[..., torch.Generator]
    vectors: Callable[[str, str], Mapping[str, Embeddings]]
    gradient: Callable[[View, TokenBatch], Tensor | None]
    texts: Callable[[str], list[str]]
    log: Callable[[str, Tensor | float], None]
