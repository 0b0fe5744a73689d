"""From texts to vectors: content tokens, wrapped rows, encoder, row pooler, heads, join."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from types import MappingProxyType
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from cse_core.errors import PartError
from cse_core.parts import Branch, MultiVectorPooler, RowPooler, SlicePooler, heads_of
from cse_core.protocols import Encoder, Tokenizer
from cse_core.suites import Role
from cse_core.types import (
    INPUT,
    SENTENCE,
    SLOTS_PER_TEXT,
    Embeddings,
    Hidden,
    TokenBatch,
    Units,
    positions_in_order,
    ragged_index,
)
from cse_engine.runtime.distributed import rank_and_size
from cse_engine.runtime.sharing import gather_rows
from cse_engine.step.token_table import TokenTable, shared_table, token_table

InputHook = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class SentenceEncoder:
    """Everything between a text and its vector.

    Attributes:
        online_only: Names of the heads that only the online branch has.
        max_length: Longest wrapped row in tokens; with a slicer, content tokens of a text.
        width: Of the states that ``pooler.dimension`` is said for; None is not known.
        finished: Whether vectors of a step are those of :meth:`encode`, as a second model's are.
        normalize: Whether :meth:`encode` scales vectors to length 1.
        truncate_dim: How many numbers of a vector it then keeps; None all.
        several: Poolers of several vectors of a row, by their levels.
        role: Whether :meth:`encode` has queries or documents, where these differ.
        members: Further encoders with the same tokens, whose vectors :meth:`encode` joins with its
            own, by ``join``: their mean, or end to end.
    """

    encoder: Encoder
    tokenizer: Tokenizer
    pooler: RowPooler
    heads: Mapping[str, nn.Module]
    max_length: int
    slicer: SlicePooler | None = None
    online_only: frozenset[str] = frozenset()
    width: int | None = None
    finished: bool = False
    normalize: bool = False
    truncate_dim: int | None = None
    several: Mapping[str, MultiVectorPooler] = field(default_factory=dict)
    role: Role | None = None
    members: tuple[SentenceEncoder, ...] = ()
    join: Literal["mean", "concat"] = "mean"

    def with_branch(self, branch: Branch) -> SentenceEncoder:
        """Return that of another branch: its encoder, its copies of heads.

        Where its encoder is that of a loaded model, the rest is that model's too. A head that it
        has no copy of is the online one, except where it has a pooler and such an encoder: the
        online heads were not trained on what that makes. A head that only it has stays.
        """
        model = branch.model
        if model is not None and branch.pooler is None:
            whole: SentenceEncoder = model.pipeline
            return replace(whole, heads={**whole.heads, **branch.heads}, slicer=self.slicer)
        heads = {**(self.heads if model is None else {}), **branch.heads}
        heads = {name: head for name, head in heads.items() if name not in self.online_only}
        tokenizer = self.tokenizer if model is None else model.tokenizer
        pooler = branch.pooler or self.pooler
        changed = replace(self, encoder=branch.encoder, pooler=pooler, heads=heads)
        return replace(changed, tokenizer=tokenizer)

    @property
    def dimension(self) -> int:
        """Return the dimension of vectors in training, for an encoder as wide as the online one."""
        last: Any = [self.pooler, *heads_of(self.heads, "row")][-1]
        joined = self.members if self.join == "concat" else ()
        return int(last.dimension) + sum(member.dimension for member in joined)

    @property
    def row_level(self) -> str:
        """Return the level that has a vector for each row."""
        return SENTENCE if self.slicer is None else self.slicer.level

    def prompt(self, view: str) -> tuple[str, str]:
        """Return the texts before and after the content of a view."""
        return self.pooler.prompt(view.partition("-")[0])

    def rows(self, content: TokenBatch, view: str) -> TokenBatch:
        """Return content as the rows that the encoder takes: cut, sliced and wrapped."""
        prompt = self.prompt(view)
        if self.slicer is None:
            longest = min(self.max_length, self.encoder.max_positions)
            return self.tokenizer.wrap(self.pooler.content(content), prompt, longest)
        if self.slicer.slices_wrapped:
            content = self.pooler.content(content)
            return self.slicer.slices(self.tokenizer.wrap(content, prompt, self.max_length))
        # Sliced first: what a pooler adds to a text must not be a slice of its own.
        lengths = content.lengths.clamp_max(self.max_length)
        cut = content.take_tokens(ragged_index(content.offsets[:-1], lengths), lengths)
        sliced = self.slicer.slices(cut)
        content = _without_source(self.pooler.content(sliced), sliced)
        return self.tokenizer.wrap(content, prompt, self.encoder.max_positions)

    def clip(self, tokens: TokenBatch) -> TokenBatch:
        """Cut content tokens from the tail of rows that the encoder cannot take."""
        excess = (tokens.lengths - self.encoder.max_positions).clamp_min(0)
        if not excess.any():
            return tokens
        row, content = tokens.row_of_token(), (~tokens.special).cumsum(0)
        behind = content[tokens.offsets[1:] - 1][row] - content
        keep = tokens.special | (behind >= excess[row])
        kept = tokens.keep_tokens(keep)
        return replace(kept, positions=positions_in_order(tokens.positions[keep], kept.offsets))

    def embed(
        self,
        tokens: TokenBatch,
        device: torch.device,
        sentences: int,
        *,
        on_words: InputHook | None = None,
        on_input: InputHook | None = None,
        input_level: bool = False,
        on_hidden: Callable[[Hidden], object] | None = None,
        layers: Iterable[int] = (),
        units: Mapping[str, Units] = MappingProxyType({}),
    ) -> dict[str, Embeddings]:
        """Return the vectors of wrapped rows by level, from one encoder call.

        Args:
            tokens: R wrapped rows, on the CPU.
            device: Where to compute.
            sentences: Of how many sentences the rows are.
            on_words: Changes ``[T, E]`` word embeddings.
            on_input: Changes ``[T, H]`` of what enters the first layer.
            input_level: Whether to add level ``input``: the mean of each sentence's input
                embeddings without special tokens, detached.
            on_hidden: Is given the states of all tokens.
            layers: Layers of which it is given the states, too.
            units: What :meth:`units` made of the tokens, for each level to add.
        """
        moved = tokens.to(device)
        words = self.encoder.word_embeddings(moved.ids)
        if on_words is not None:
            words = on_words(words)
        pooling: list[Any] = [self.pooler, *(self.several[level] for level in units)]
        layers = (*layers, *(i for part in pooling for i in part.layers), *[0] * input_level)
        filled = tokens.lengths.nonzero().squeeze(1)  # rows without tokens have no states to pool
        whole = len(filled) == tokens.rows
        all_read = on_hidden is not None or units or not whole
        read = None if all_read else self.pooler.reads(moved)
        hidden = self.encoder(
            words, moved.positions, tokens.offsets, on_input=on_input, layers=layers, read=read
        )
        if on_hidden is not None:
            on_hidden(hidden)
        # Branches share poolers, and heads that they have no copy of, in modes of their own.
        with _in_mode(self._after_encoder(), self.encoder.training):
            pooled = self.pooler.pool(hidden, moved if whole else moved.take_rows(filled))
            if not whole:
                rows = filled.to(pooled.device)
                pooled = pooled.new_zeros(moved.rows, pooled.shape[1]).index_copy(0, rows, pooled)
            said = self.pooler.dimension if self.encoder.hidden_size == self.width else None
            _see_shape(self.pooler, "pool", pooled, moved.rows, said)
            raw = Embeddings(pooled, moved.owner, moved.slot, self._lengths(moved), sentences)
            headed = self._headed(raw)
            levels = {self.row_level: headed}
            if self.slicer is not None:
                early = self.slicer.join_before_heads
                joined = self.slicer.join(raw if early else headed)
                levels[SENTENCE] = self._headed(joined) if early else joined
            for level, made in units.items():
                levels[level] = self._several(level, hidden, made, moved)
            if self.finished:
                levels = {k: replace(v, vectors=self.finish(v.vectors)) for k, v in levels.items()}
        if input_level:
            levels[INPUT] = _mean_inputs(hidden.layers[0].detach(), moved, levels[SENTENCE])
        return levels

    def units(self, tokens: TokenBatch, view: str) -> dict[str, Units]:
        """Return by level the units of wrapped rows, on the CPU, that have a vector each.

        Raises:
            PartError: If there are too many of a text.
        """
        made = {}
        for level, pooler in self.several.items():
            units = made[level] = pooler.units(tokens, view.partition("-")[0])
            text = (tokens.owner * SLOTS_PER_TEXT + tokens.slot // SLOTS_PER_TEXT)[units.row]
            counts = torch.unique_consecutive(text, return_counts=True)[1]
            if (most := max(counts.tolist(), default=0)) > SLOTS_PER_TEXT:
                what = f"made {most:,} vectors of a text, more than {SLOTS_PER_TEXT:,}"
                raise PartError(pooler, "units", what)
        return made

    def _several(self, level: str, hidden: Hidden, units: Units, tokens: TokenBatch) -> Embeddings:
        """Return the vectors of a level of units, their slots counted in each row."""
        pooler, units = self.several[level], units.to(tokens.ids.device)
        vectors = pooler.pool(hidden, units)
        said = pooler.dimension if self.encoder.hidden_size == self.width else None
        _see_shape(pooler, "pool", vectors, len(units), said)
        slot = torch.arange(len(units), device=vectors.device)
        slot = slot - torch.searchsorted(units.row, units.row)
        lengths = units.lengths.to(vectors.device, non_blocking=True)
        return self._headed(Embeddings(vectors, tokens.owner[units.row], slot, lengths), level)

    def finish(self, vectors: Tensor) -> Tensor:
        """Return vectors ``[N, D]`` scaled to length 1 and cut, where the model does so."""
        return (normalize(vectors, dim=-1) if self.normalize else vectors)[:, : self.truncate_dim]

    def _lengths(self, tokens: TokenBatch) -> Tensor:
        """Return ``[R]`` tokens of each row that its text has; slices of wrapped rows have all."""
        if self.slicer is not None and self.slicer.slices_wrapped:
            return tokens.lengths.to(tokens.ids.device, non_blocking=True)
        counts = torch.zeros(tokens.rows, dtype=torch.long, device=tokens.ids.device)
        return counts.index_add_(0, tokens.row_of_token(), (tokens.source >= 0).long())

    def modules(self) -> list[nn.Module]:
        """Return the encoder, and every part of what comes after it that is a module."""
        members = chain.from_iterable(member.modules() for member in self.members)
        return [self.encoder, *self._after_encoder(), *members]

    def _after_encoder(self) -> list[nn.Module]:
        parts = (self.slicer, self.pooler, *self.several.values(), *self.heads.values())
        return [part for part in parts if isinstance(part, nn.Module)]

    def _headed(self, pooled: Embeddings, level: str = "row") -> Embeddings:
        vectors = pooled.vectors
        for head in heads_of(self.heads, level):
            vectors = head(vectors)
            _see_shape(head, "forward", vectors, len(pooled), head.dimension)
        return replace(pooled, vectors=vectors)

    def encode(self, texts: Sequence[str], device: torch.device, *, shared: bool = False) -> Tensor:
        """Return ``[N, D]`` float32 vectors of texts on the CPU, in evaluation mode.

        Texts are encoded in order of length and returned in their own. Where processes have
        ``shared`` texts, each makes some of the calls that one process makes, so that the vectors
        are the same, and every one gets all of them.
        """
        table = self.table(texts, self.max_length, shared)
        return self.encode_table(table, device, shared=shared)

    def table(self, texts: Sequence[str], longest: int | None, shared: bool) -> TokenTable:
        """Return texts as content tokens, at most ``longest`` of each, for :meth:`encode_table`."""
        return (shared_table if shared else token_table)(self.tokenizer, texts, longest)

    def embed_table(
        self,
        table: TokenTable,
        device: torch.device,
        batch_tokens: int | None = None,
        *,
        block: int | list[int] | None = None,
        shared: bool = False,
    ) -> Tensor:
        """Return ``[N, D]`` vectors of N texts that are tokenised already, with gradient.

        They are those of :meth:`encode`; ``encode_table`` is the same without gradient. An encoder
        call has about ``batch_tokens`` tokens: None takes :func:`tokens_at_once`.
        ``block`` texts at a time are put in order of length, by default all; a list has the number
        of each block.

        Raises:
            ElsewhereError: If they are shared and another process failed.
        """
        if self.members:
            parts = [
                replace(part, members=(), truncate_dim=None).embed_table(
                    table, device, batch_tokens, block=block, shared=shared
                )
                for part in (self, *self.members)
            ]
            return self._joined(parts)[:, : self.truncate_dim]
        at_once = batch_tokens or self.encoder.tokens_at_once or tokens_at_once(device)
        calls = list(_calls(table.offsets.diff() + self.tokenizer.special_count, at_once, block))
        rank, size = rank_and_size() if shared else (0, 1)
        # Every process makes as many calls as the first one.
        calls += [torch.zeros(0, dtype=torch.long)] * (-len(calls) % size)

        def made() -> Tensor:
            vectors = []
            with _in_mode(self.modules(), training=False):
                for rows in calls[rank::size]:
                    tokens = self.rows(table.rows(rows), "anchor")
                    vectors.append(self._at_the_end(self.embed(tokens, device, len(rows))))
            empty = torch.zeros(0, getattr(self.pooler, "dimension", 0))
            return torch.cat(vectors) if vectors else empty

        vectors = gather_rows(made) if shared else made()
        if not calls:
            return vectors
        order = torch.cat([rows for first in range(size) for rows in calls[first::size]])
        return vectors[torch.argsort(order)]

    encode_table = torch.no_grad()(embed_table)

    def _at_the_end(self, levels: Mapping[str, Embeddings]) -> Tensor:
        """Return ``[N, D]`` finished float32 vectors of texts on the CPU."""
        vectors = levels[SENTENCE].vectors.float()
        return (vectors if self.finished else self.finish(vectors)).cpu()

    def _joined(self, parts: Sequence[Tensor]) -> Tensor:
        """Join ``[N, D]`` vectors of this encoder and of its members."""
        return (
            torch.cat([*parts], dim=1) if self.join == "concat" else torch.stack([*parts]).mean(0)
        )

    @torch.no_grad()
    def encode_several(
        self, table: TokenTable, level: str, device: torch.device, batch_tokens: int | None = None
    ) -> Iterator[tuple[Tensor, Tensor, list[Tensor]]]:
        """Yield places ``[n]`` of texts, their vectors ``[n, D]``, ``[m, D']`` of each at a level.

        They are float32 on the CPU, in order of length of the texts; those of the level are of no
        length in particular. Of an ensemble they are joined.

        Raises:
            KeyError: If the model has no such level.
        """
        cut = None if self.members else self.truncate_dim
        encoders = [
            replace(one, several={level: one.several[level]}, members=(), truncate_dim=cut)
            for one in (self, *self.members)
        ]
        view = "positive" if self.role == "document" else "anchor"
        at_once = batch_tokens or self.encoder.tokens_at_once or tokens_at_once(device)
        with _in_mode(self.modules(), training=False):
            for rows in _calls(table.offsets.diff() + self.tokenizer.special_count, at_once, None):
                tokens = encoders[0].rows(table.rows(rows), "anchor")
                units = encoders[0].units(tokens, view)
                made = [one.embed(tokens, device, len(rows), units=units) for one in encoders]
                ends = zip(encoders, made, strict=True)
                whole = self._joined([one._at_the_end(levels) for one, levels in ends])
                parts = self._joined([levels[level].vectors.float().cpu() for levels in made])
                counts = torch.bincount(tokens.owner[units[level].row], minlength=len(rows))
                several = torch.split(parts, counts.tolist())
                yield rows, whole[:, : self.truncate_dim], list(several)


def _calls(cost: Tensor, at_once: int, block: int | list[int] | None) -> Iterator[Tensor]:
    """Yield the rows of each encoder call: of like length, ``at_once`` of the ``[N]`` tokens."""
    for places in torch.split(torch.arange(len(cost)), block or max(1, len(cost))):
        rows = places[torch.argsort(cost[places], stable=True)]
        sums = torch.cumsum(cost[rows], 0)
        start = most = 0
        while start < len(rows):
            stop = max(int(torch.searchsorted(sums, most + at_once, right=True)), start + 1)
            most = int(sums[stop - 1])
            yield rows[start:stop]
            start = stop


def tokens_at_once(device: torch.device) -> int:
    """Return the number of tokens for an encoder call without gradient on a device.

    On a CPU in fp32 so few that what a layer makes of them stays in the caches. In bf16 every call
    casts the weights again, and a GPU is idle between small calls: more of them.
    """
    few = device.type == "cpu" and not torch.is_autocast_enabled("cpu")
    return 1024 if few else 8192


@contextmanager
def _in_mode(modules: Iterable[nn.Module], training: bool) -> Iterator[None]:
    other = [module for module in modules if module.training != training]
    for module in other:
        module.train(training)
    try:
        yield
    finally:
        for module in other:
            module.train(not training)


def _see_shape(part: Any, method: str, vectors: Tensor, rows: int, dimension: object) -> None:
    """Refuse vectors that are not one for each row, or not of the dimension that was announced."""
    wanted = vectors.shape[-1] if dimension is None else dimension
    if vectors.shape != (rows, wanted):
        what = f"promised [{rows}, {wanted}], returned {list(vectors.shape)}"
        if vectors.shape[:-1] == (rows,):
            what += f": {type(part).__name__}.dimension says {wanted}"
        raise PartError(part, method, what)


def _without_source(content: TokenBatch, slices: TokenBatch) -> TokenBatch:
    """Return the content of slices where tokens that these do not have are of no place in the text.

    A slice's own tokens are those from its first to its last one.
    """
    if content is slices:
        return content
    source = torch.cat([slices.source, slices.source.new_full((1,), -1)])
    first = source[slices.offsets[:-1]]
    last = source[slices.offsets[1:] - 1].masked_fill(slices.lengths == 0, -1)
    row = content.row_of_token()
    inside = (content.source >= first[row]) & (content.source <= last[row])
    return replace(content, source=content.source.masked_fill(~inside, -1))


def _mean_inputs(states: Tensor, tokens: TokenBatch, sentences: Embeddings) -> Embeddings:
    owner_of_token = tokens.owner[tokens.row_of_token()]
    place = torch.searchsorted(sentences.owner, owner_of_token)
    content = (~tokens.special).to(states.dtype)
    sums = states.new_zeros((len(sentences), states.shape[1]), dtype=torch.float32)
    sums.index_add_(0, place, (states * content.unsqueeze(1)).float())
    counts = sums.new_zeros(len(sentences)).index_add_(0, place, content.float())
    return replace(sentences, vectors=sums / counts.clamp_min(1).unsqueeze(1))
