"""The views of a batch as tokens: texts and their augmenters, wrapped rows and theirs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from cse_core.errors import PartError
from cse_core.protocols import Tokenizer
from cse_core.reporter import Reporter
from cse_core.types import SLOTS_PER_TEXT, Embeddings, TokenBatch, Units, View
from cse_engine.compose.composition import PlannedView
from cse_engine.runtime import distributed
from cse_engine.step.assembly import Assembly, BoundAugmenter
from cse_engine.step.context import Context
from cse_engine.step.row_keys import RowKeys, occurrences
from cse_engine.step.sentence_encoder import SentenceEncoder
from cse_engine.step.training_rows import TrainingRows

MAX_WATCHED_CALLS = 40
"""Calls or steps after which a part that did nothing is not watched any more."""


@dataclass(frozen=True)
class PreparedView:
    """A view ready for the encoder, or those of its rows that one encoder call takes.

    Attributes:
        tokens: Wrapped rows, ``owner`` and ``slot`` the row keys over all processes: what
            augmenters of embeddings see.
        text: ``[R]`` which of the view's texts a row is of; rows of a text lie together.
        units: Units of the rows that have a vector each, by level, where they were asked for.
    """

    view: View
    tokens: TokenBatch
    text: Tensor
    units: Mapping[str, Units] = field(default_factory=dict)

    @cached_property
    def texts(self) -> int:
        """How many texts there are."""
        return len(torch.unique_consecutive(self.text))

    @staticmethod
    def of(view: View, tokens: TokenBatch, first_owner: int) -> PreparedView:
        """Give wrapped rows, whose ``owner`` numbers the texts of a view, their keys.

        The rows of this process begin with ``first_owner`` of the batch.
        """
        owner = text = tokens.owner
        slot = tokens.slot
        if view.owner is not None:
            owners = view.owner.cpu()
            owner, slot = owners[text], slot + occurrences(owners)[text] * SLOTS_PER_TEXT
        return PreparedView(view, replace(tokens, owner=owner + first_owner, slot=slot), text)

    def between(self, start: int, stop: int) -> PreparedView:
        """Return the rows whose batch rows are in ``[start, stop)``."""
        inside = (self.tokens.owner >= start) & (self.tokens.owner < stop)
        if bool(inside.all()):
            return self
        rows = inside.nonzero().squeeze(1)
        return PreparedView(self.view, self.tokens.take_rows(rows), self.text[rows])

    def text_keys(self) -> tuple[Tensor, Tensor]:
        """Return owner and slot of each text, the keys of what its rows are joined to."""
        first = self.text.diff(prepend=self.text.new_tensor([-1])) != 0
        return self.tokens.owner[first], self.tokens.slot[first] // SLOTS_PER_TEXT * SLOTS_PER_TEXT

    def with_units(self, encoder: SentenceEncoder) -> PreparedView:
        """Return the rows with the units that an encoder makes of them."""
        units = encoder.units(self.tokens, self.view.name)
        return replace(self, units=units) if units else self

    def unit_keys(self, level: str) -> tuple[Tensor, Tensor]:
        """Return owner and slot of each unit of a level; slots count those of each text."""
        row, (owner, first) = self.units[level].row, self.text_keys()
        text = torch.unique_consecutive(self.text, return_inverse=True)[1][row]
        slot = torch.arange(len(row)) - torch.searchsorted(text, text)
        return owner[text], first[text] + slot


class ViewBuilder:
    """Builds the views of batches from the rows of a round.

    Attributes:
        unchanged: Calls of each augmenter that changed nothing, by its path; -1 once one did.
        came: Views that parts have made.
    """

    def __init__(self, assembly: Assembly, rows: TrainingRows) -> None:
        self.assembly = assembly
        self.rows = rows
        self.planned = {view.name: view for view in assembly.composition.views}
        self.unchanged: dict[str, int] = {}
        self.came: set[str] = set()
        self._vectors: dict[tuple[str, str], tuple[Tensor, Tensor, Tensor]] = {}

    def tokenise(self, reporter: Reporter) -> None:
        """Tokenise what the round's steps will ask for, as far as the plan tells it."""
        rank = distributed.rank_and_size()[0]
        if rank:
            distributed.barrier()  # the first process makes the tables, the others read them
        composition = self.assembly.composition
        pairs = ((name, planned.branch) for planned in composition.passes for name in planned.views)
        for name, branch in pairs:
            if self.planned[name].made_by is not None:
                needs = composition.view_makers[name].requires
                columns = [n[0].name for n in needs if len(n) == 1 and n[0].kind == "column"]
            else:
                columns = [] if self._of(name, "text") else [self.column(name)]
            tokenizer = self._tokenizer(name, self.assembly.encoders[branch])
            for column in columns:
                if self.rows.ahead and column in self.rows.columns:
                    self.rows.tokenise(column, tokenizer, reporter)
        if not rank:
            distributed.barrier()

    def build(self, ctx: Context) -> dict[str, PreparedView]:
        """Make all views of the rows of a context, by name."""
        encoders = self.assembly.encoders
        return {
            view.name: self.prepare(view, ctx, encoders[view.branch]) for view in self._views(ctx)
        }

    def prepare(self, view: View, ctx: Context, encoder: SentenceEncoder) -> PreparedView:
        """Return a view as the rows of a branch's encoder."""
        tokens = encoder.rows(self._content(view, ctx, encoder), view.name)
        if encoder.tokenizer is self.assembly.online.tokenizer:
            for augmenter in self._of(view.name, "tokens"):
                tokens = self.augment(augmenter, tokens, tokens, view, ctx)
        return PreparedView.of(view, encoder.clip(tokens), ctx.first)

    def augment(
        self, augmenter: BoundAugmenter, x: Any, tokens: TokenBatch | None, view: View, ctx: Context
    ) -> Any:
        """Change texts, tokens or ``[T, E]`` embeddings of a view by an augmenter with its draws.

        It is noted if it changes nothing, in the first calls.
        """
        path = augmenter.planned.path
        given = list(x) if isinstance(x, list) else x  # a list can be changed in place
        ctx = ctx.replace(place=(path, view.name))
        changed = self.assembly.calls(augmenter.part, "__call__", given, tokens, view, ctx)
        seen = self.unchanged.get(path, 0)
        if 0 <= seen < MAX_WATCHED_CALLS:
            self.unchanged[path] = seen + 1 if _equal(changed, x) else -1
        return changed

    def _views(self, ctx: Context) -> list[View]:
        local = [view for view in self.planned.values() if view.made_by is None]
        views = [View(v.name, v.role, v.branch, owner=self._owners(v, ctx)) for v in local]
        rows = self.rows.corpus_row[ctx.index]
        for part in self.assembly.parts.values():
            for added in self.assembly.calls(part, "views", rows, ctx):
                if added.name not in self.planned:
                    raise PartError(part, "views", f"adds {added.name}, which its record omits")
                self.came.add(added.name)
                view = self.planned[added.name]
                views.append(replace(added, branch=view.branch, role=view.role))
        return views

    def _owners(self, view: PlannedView, ctx: Context) -> Tensor | None:
        """Return ``[R]`` whose texts those of a view are, None where each row has one."""
        _, counts = ctx.places(self.column(view.name), view)
        return None if counts is None else torch.arange(len(counts)).repeat_interleave(counts)

    def lengths(self, ctx: Context) -> dict[str, int]:
        """Count the texts of the longest list of the batch, for each view that has all texts."""
        found = {}
        for view in self.planned.values():
            counts = None if view.made_by else ctx.places(self.column(view.name), view)[1]
            if counts is not None:
                found[view.name] = max(1, int(counts.max()))
        return found

    def _content(self, view: View, ctx: Context, encoder: SentenceEncoder) -> TokenBatch:
        augmenters, tokenizer = self._of(view.name, "text"), self._tokenizer(view.name, encoder)
        texts = view.texts
        same = encoder.tokenizer is self.assembly.online.tokenizer
        if view.tokens is not None and same and (texts is None or not augmenters):
            return replace(view.tokens, owner=torch.arange(view.tokens.rows))
        if texts is None:
            column = self.column(view.name)
            places, _ = ctx.places(column, self.planned[view.name])
            if not augmenters:
                return self.rows.content(column, places, tokenizer)
            texts = self.rows.texts(column, places)
        for augmenter in augmenters:
            texts = self.augment(augmenter, list(texts), None, view, ctx)
        return tokenizer.content(texts, tokenizer.longest or self.rows.longest)

    def _tokenizer(self, view: str, encoder: SentenceEncoder) -> Tokenizer:
        """Return a branch's tokenizer, the run's own with the prompt of a view that has one."""
        online = self.assembly.online.tokenizer
        if encoder.tokenizer is not online:  # another model has its own prompts
            return encoder.tokenizer
        return online.with_prompt(self.planned[view].prompt)

    def kept(self, view: View, branch: str, ctx: Context, keys: RowKeys) -> Embeddings | None:
        """Return the vectors of a context's rows, with their keys, by a branch that keeps them.

        None where it does not, or where a part makes or changes the texts. The processes make the
        vectors together.
        """
        encoder, planned = self.assembly.encoders[branch], self.planned[view.name]
        cached = self.assembly.branches[branch].cached and encoder.slicer is None
        cached = cached and not encoder.several
        if not cached or planned.made_by or self._of(view.name, "text"):
            return None
        if encoder.prompt(view.name) != encoder.prompt("anchor"):  # which the table gets
            return None
        column = self.column(view.name)
        if (branch, column) not in self._vectors:
            table, place = self.rows.tokenise(column, encoder.tokenizer)
            lengths = table.offsets.diff().clamp_max(encoder.max_length)
            vectors = encoder.encode_table(table, self.assembly.device, shared=True)
            self._vectors[branch, column] = vectors, lengths, place
        *parts, place = self._vectors[branch, column]
        device, rows = self.assembly.device, place[ctx.places(column, planned)[0]]
        vectors, lengths = (part[rows].to(device, non_blocking=True) for part in parts)
        return Embeddings(vectors, keys.owner, keys.slot, lengths)

    def column(self, view: str) -> str:
        """Return the column of a core view's texts in this round."""
        if self.rows.pairs is not None and view in self.rows.pairs:
            return view
        column = self.planned[view].column or "text"
        return column if column in self.rows.columns else "text"

    def _of(self, view: str, point: str) -> list[BoundAugmenter]:
        return [
            augmenter
            for augmenter in self.assembly.augmenters
            if augmenter.point == point and view in augmenter.views
        ]


def _equal(one: Any, two: Any) -> bool:
    if isinstance(one, TokenBatch):
        names = ("offsets", "ids", "positions")
        return all(_equal(getattr(one, name), getattr(two, name)) for name in names)
    return torch.equal(one, two) if isinstance(one, Tensor) else bool(one == two)
