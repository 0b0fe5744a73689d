"""The data that parts pass to each other in a step; tokens are ragged, no part sees padding."""

# mypy: disable-error-code="empty-body"

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from torch import Tensor

from cse_core.capabilities import Role
from cse_core.token_batch import NO_LABEL as NO_LABEL
from cse_core.token_batch import TokenBatch as TokenBatch
from cse_core.token_batch import TokenStates as TokenStates
from cse_core.token_batch import TokenSums as TokenSums
from cse_core.token_batch import Units as Units
from cse_core.token_batch import offsets_of as offsets_of
from cse_core.token_batch import positions_in_order as positions_in_order
from cse_core.token_batch import positions_of as positions_of
from cse_core.token_batch import ragged_index as ragged_index

if TYPE_CHECKING:
    from cse_core.options import LossOptions

SENTENCE = "sentence"
"""The level of whole rows of the data; others are named by the slicing part."""
SLOTS_PER_TEXT = 2**10
"""Room for the slots of one text, its slices or units, where a batch row has several texts."""
MAX_SLOTS = 2**20
"""Room for the slots of a batch row, of as many texts as it may have."""
INPUT = "input"
"""The level of mean input embeddings, built only when a part requires it."""
_OF_ROWS = ("vectors", "owner", "slot", "length")


@dataclass(frozen=True)
class View:
    """One reading of the batch's sentences: which texts or tokens, and which branch encodes them.

    If a part adds the view, role and branch come from the plan: ``views.VIEW.branch``, else the
    branch of the store that adds it, else online.

    Attributes:
        name: Instance name; it decides the role, see ``ViewSpec``.
        role: ``anchor``, ``positive``, ``negative`` or ``aux`` (everything else).
        branch: Branch that encodes it.
        texts: One text per row, or None if ``tokens`` is given.
        tokens: Content tokens without special tokens, or None if ``texts`` is given.
        owner: ``[R]`` batch row of each text, counted from this process's first; by default one
            text per sentence, in order.
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
        length: ``[N]`` tokens of the text behind each vector; for slices of wrapped rows all
            tokens.
        owners: How many owners there are, where that is known: to a slicing part that joins.
    """

    vectors: Tensor
    owner: Tensor
    slot: Tensor
    length: Tensor
    owners: int | None = None

    def __len__(self) -> int:
        """Return N."""
        return len(self.owner)

    @property
    def text(self) -> Tensor:
        """Return ``[N]`` which text of its sentence a row is of, where a view has several each."""
        return self.slot // SLOTS_PER_TEXT

    def detach(self) -> Embeddings:
        """Return the same without gradient."""
        return replace(self, vectors=self.vectors.detach())

    def take(self, index: Tensor | slice) -> Embeddings:
        """Return the rows at ``index``."""
        taken: Any = (getattr(self, name)[index] for name in _OF_ROWS)
        return Embeddings(*taken)

    @staticmethod
    def join(several: Sequence[Embeddings]) -> Embeddings:
        """Lay several one after the other."""
        joined: Any = (torch.cat([getattr(item, name) for item in several]) for name in _OF_ROWS)
        return Embeddings(*joined)


@dataclass(frozen=True)
class Positives:
    """Positives of every anchor.

    Attributes:
        vectors: ``[A, P, D]``.
        weights: ``[A, P]``, zero where an anchor has fewer than P; None: all count equally.
        distinct: ``[N]`` which of the ``A * P`` vectors are in-batch negatives of other anchors, so
            that a shared positive counts once; None: all.
    """

    vectors: Tensor
    weights: Tensor | None = None
    distinct: Tensor | None = None


@dataclass(frozen=True)
class Tiles:
    """How the terms of many negatives are computed: some anchors at a time, each process its own.

    Attributes:
        of: ``of(anchors)``: the negatives that a slice of the anchors sees.
        all: Slices of all anchors.
        own: Slices that this process computes.
        gathered: ``gathered(values)`` joins the ``[a]`` numbers of all processes.
        summed: ``summed(values)`` adds a tensor over the processes.
    """

    of: Callable[[slice], Negatives]
    all: tuple[slice, ...]
    own: tuple[slice, ...]
    gathered: Callable[[Tensor], Tensor]
    summed: Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Negatives:
    """Negatives, each seen by some or all anchors.

    For a large batch, mask and log-weights are created when first read and then take memory that
    grows with its square; ``infonce_terms`` reads neither (``tiles``).

    Attributes:
        vectors: ``[N, D]``.
        mask: ``[A, N]`` bool; True: not a negative of that anchor.
        log_weights: ``[A, N]`` added to logits; minus infinity is weight zero.
        row: ``[N]`` corpus row, -1 for none.
        age: ``[N]`` steps since it was stored; 0 in the batch.
        slot: ``[N]`` which row of its sentence it is; -1 for none.
        owner: ``[N]`` batch row of its sentence; -1 for none.
        blocks: Origin of the columns, in order: ``(("in-batch", 63), ("queue", 512))``.
        views: The view of each block's vectors, by the block's name.
        side: ``[n, D']`` vectors of a block's rows from another branch, by ``(block, branch)``:
            kept for stores that weigh with that branch (``StoreSpec.side``).
        tiles: How they are made for some anchors at a time; None where all are there. What
            ``dataclasses.replace`` changes has none.
    """

    vectors: Tensor
    mask: Tensor
    log_weights: Tensor
    row: Tensor
    age: Tensor
    slot: Tensor
    owner: Tensor
    blocks: tuple[tuple[str, int], ...] = ()
    views: Mapping[str, str] = field(default_factory=dict)
    side: Mapping[tuple[str, str], Tensor] = field(default_factory=dict)
    tiles: Tiles | None = field(default=None, init=False)

    def __len__(self) -> int:
        """Return N."""
        return len(self.row)

    def spans(self) -> Iterator[tuple[str, slice]]:
        """Yield the name and the columns of each block."""
        start = 0
        for name, count in self.blocks:
            yield name, slice(start, start + count)
            start += count

    @staticmethod
    def of(
        vectors: Tensor,
        anchors: int,
        *,
        name: str,
        view: str | None = None,
        mask: Tensor | None = None,
        log_weights: Tensor | None = None,
        row: Tensor | None = None,
        age: Tensor | None = None,
        slot: Tensor | None = None,
        owner: Tensor | None = None,
        side: Mapping[tuple[str, str], Tensor] | None = None,
    ) -> Negatives:
        """Make negatives of ``[N, D]`` vectors.

        An omitted mask or weight is one read-only number for all pairs.
        """
        count, device = len(vectors), vectors.device
        zero = torch.zeros((), device=device, dtype=vectors.dtype).expand(anchors, count)
        nothing = torch.zeros((), device=device, dtype=torch.bool).expand(anchors, count)
        none = torch.full((count,), -1, device=device)
        return Negatives(
            vectors=vectors,
            mask=nothing if mask is None else mask,
            log_weights=zero if log_weights is None else log_weights,
            row=none if row is None else row,
            age=torch.zeros(count, dtype=torch.long, device=device) if age is None else age,
            slot=none if slot is None else slot,
            owner=none if owner is None else owner,
            blocks=((name, count),),
            views={} if view is None else {name: view},
            side=side or {},
        )

    @staticmethod
    def join(several: Sequence[Negatives]) -> Negatives:
        """Put negatives side by side."""
        if len(several) == 1:
            return several[0]

        def joined(names: str, dim: int) -> dict[str, Any]:
            parts = {name: [getattr(block, name) for block in several] for name in names.split()}
            return {name: torch.cat(tensors, dim) for name, tensors in parts.items()}

        return Negatives(
            **joined("vectors row age slot owner", 0),
            **joined("mask log_weights", 1),
            blocks=tuple(name for block in several for name in block.blocks),
            views=dict(ChainMap(*(dict(block.views) for block in several))),
            side=dict(ChainMap(*(dict(block.side) for block in several))),
        )


@dataclass(frozen=True)
class CorpusKeys:
    """What the core knows about every row, for masks.

    Attributes:
        documents: ``[rows]`` document number, -1 for none.
        text_ids: ``[rows]`` first row with the same text.
        first: Number of the first row. A round that brings its own texts numbers them apart from
            the corpus and from other rounds, so that what a store kept is never taken for them.
    """

    documents: Tensor
    text_ids: Tensor
    first: int = 0

    def same(self, keys: Tensor, row: Tensor, other: Tensor) -> Tensor:
        """Return ``[A, N]`` whether rows ``[A]`` and ``[N]`` have equal, known keys.

        A row that is not among these rows equals nothing.
        """
        one, two = self.look_up(keys, row), self.look_up(keys, other)
        return (one.unsqueeze(1) == two.unsqueeze(0)) & (one >= 0).unsqueeze(1)

    def look_up(self, keys: Tensor, row: Tensor) -> Tensor:
        """Return the keys of ``[N]`` rows; of one that is not among these rows -1."""
        place = row - self.first
        known = (place >= 0) & (place < len(keys))
        return torch.where(known, keys[place.clamp(0, len(keys) - 1)], -1)


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
        view: View of the anchors; in the second direction of a loss, its target's.
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
    view: str = "anchor"

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
        pairs: Columns of the round's rows: ``text``, ``positive`` and others that parts need, each
            a list of texts or an integer array of corpus rows.
        losses: Names of the losses of this round; None: all.
        train: Overrides of ``train.*``.
        keep_optimizer: Whether the optimiser's moments continue.
        keep_schedule: Whether the learning rate continues from the round before, on a schedule over
            the run's steps (``RunInfo.steps``) instead of the round's. Bring ``max_steps`` in
            ``train`` of each round then: by default a round has as many steps as the run.
    """

    pairs: Mapping[str, Sequence[str] | np.ndarray[Any, Any]]
    losses: tuple[str, ...] | None = None
    train: Mapping[str, object] = field(default_factory=dict)
    keep_optimizer: bool = False
    keep_schedule: bool = False


@dataclass(kw_only=True, eq=False)
class StepContext:
    """What a part may ask for in a step: the engine and the test kit fill in the methods.

    Attributes:
        step: Finished optimiser steps of this round.
        total_steps: Optimiser steps of this round.
        epoch: From 0.
        round: From 1; 0 in a run without rounds.
        rows: ``[B]`` corpus rows of the batch, over all processes.
        device: Where tensors belong.
    """

    step: int
    total_steps: int
    epoch: int
    round: int
    rows: Tensor
    device: torch.device

    def replace(self, **changes: Any) -> Self:
        """Copy the context with other attributes or methods.

        Raises:
            TypeError: If it has none of such a name.
        """
        if unknown := [name for name in changes if not hasattr(self, name)]:
            raise TypeError(f"a context has no {', '.join(unknown)}")
        changed = copy(self)
        vars(changed).update(changes)
        return changed

    def generator(
        self, name: str, *, shared: bool = True, device: torch.device | str = "cpu"
    ) -> torch.Generator:
        """Make a new generator, the same for the same name, step and seed.

        An augmenter's draws differ by instance, view and chunk.

        Args:
            name: What it draws.
            shared: Whether all processes draw the same.
            device: Where it draws.
        """

    def uniform(self, name: str, tokens: TokenBatch) -> Tensor:
        """Draw ``[T]`` numbers from [0, 1).

        They are the same whichever process or chunk has the row, if a view has one text per row.
        """

    def vectors(self, view: str, branch: str | None) -> Mapping[str, Embeddings]:
        """Give a view's Embeddings by level, without gradient.

        Branch None is the view's own, others must be declared in ``encodes``.

        Raises:
            KeyError: If the batch has no such view.
            RuntimeError: If no record declares it, or nothing is encoded yet.
        """

    def beside(self, view: str, rows: Embeddings) -> Mapping[str, Tensor]:
        """Give the tensors that a memory keeps beside a view's Embeddings.

        These are their ``slot``, and their vectors from each branch of ``StoreSpec.side``.
        """

    def gradient(self, view: View, tokens: TokenBatch) -> Tensor | None:
        """Give ``[T, E]``, the gradient of the objective for a view's inputs.

        It is what the record of the augmenter asks for at its point; None if there is none (yet).
        """

    def texts(self, column: str) -> list[str]:
        """Give the batch's texts of a column, over all processes; those of lists end to end.

        In ``views``, ``sums``, and augmenters of texts and tokens, those of the rows at hand.
        """

    def values(self, column: str) -> Tensor:
        """Give ``[B]`` numbers of the rows that ``texts`` is of, for a column that a record reads.

        They are float32, or int64 for integers and labels. ``[batch.owner]`` selects those of the
        anchors. A ``PerText`` of lists is ``[B, P]`` beside a view that has all texts of a row, 0
        where a row has fewer: ``[rows.owner, rows.text]`` selects those of the view's rows.
        """

    def tokens(self, column: str) -> TokenBatch:
        """Give the content tokens of the rows that ``texts`` is of, by the run's tokenizer."""

    def negatives(
        self, batch: Batch, options: LossOptions, given: Negatives | None = None
    ) -> Negatives:
        """Give the in-batch negatives of a loss with these options, masked.

        With ``given`` these are masked instead.
        """

    def log(self, name: str, value: Tensor | float) -> None:
        """Add a scalar to metrics.jsonl, also in ``after_step``.

        Begin the name with the instance's. Values that ``weigh`` logs for some anchors are averaged
        over the anchors.
        """


@dataclass(frozen=True)
class Hidden:
    """An encoder's output for ``T`` tokens in ``R`` rows.

    Attributes:
        last: ``[T, H]``, the model's output; ``[R, H]`` if one token per row was requested.
        layers: The requested layers, ``[T, H]`` each: 0 is what entered the first layer, ``i`` the
            output of layer ``i``; the last one includes the model's final norm.
        selected_only: Whether ``last`` holds the tokens that were asked for and no others.
    """

    last: Tensor
    layers: dict[int, Tensor] = field(default_factory=dict)
    selected_only: bool = False

    def at(self, read: Tensor) -> Tensor:
        """Return the last states ``[R, H]`` of one token per row.

        Args:
            read: ``[R]`` int64 indices of tokens.
        """
        if self.selected_only:
            return self.last
        return self.last.index_select(0, read.to(self.last.device, non_blocking=True))
