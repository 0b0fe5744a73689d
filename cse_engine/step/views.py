"""The views of a batch as tokens: texts and their augmenters, wrapped rows and theirs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor

from cse_core.errors import PartError
from cse_core.protocols import Tokenizer
from cse_core.reporter import Reporter
from cse_core.types import SLOTS_PER_TEXT, TokenBatch, View
from cse_engine.runtime import distributed
from cse_engine.step.assembly import Assembly, BoundAugmenter
from cse_engine.step.context import Context
from cse_engine.step.row_keys import occurrences
from cse_engine.step.sentence_encoder import SentenceEncoder
from cse_engine.step.training_rows import TrainingRows

_COMPARED = ("offsets", "ids", "positions")
MAX_WATCHED_CALLS = 40
"""Calls after which an augmenter that changed nothing is not watched any more."""


@dataclass(frozen=True)
class PreparedView:
    """A view ready for the encoder, or those of its rows that one encoder call takes.

    Attributes:
        tokens: Wrapped rows, ``owner`` and ``slot`` the row keys over all processes: what
            augmenters of embeddings see.
        text: ``[R]`` which of the view's texts a row is of; rows of a text lie together.
    """

    view: View
    tokens: TokenBatch
    text: Tensor

    @cached_property
    def texts(self) -> int:
        """How many texts there are."""
        return len(torch.unique_consecutive(self.text))

    @staticmethod
    def of(view: View, tokens: TokenBatch, owner: Tensor | None, first_owner: int) -> PreparedView:
        """Give wrapped rows, whose ``owner`` numbers their texts, their keys.

        ``owner`` is the batch row of each text, counted from this process's first, which is
        ``first_owner`` of the batch; None where text i belongs to row i.
        """
        text = tokens.owner
        if owner is None:
            keyed = replace(tokens, owner=text + first_owner if first_owner else text)
        else:
            slot = tokens.slot + occurrences(owner)[text] * SLOTS_PER_TEXT
            keyed = replace(tokens, owner=owner[text] + first_owner, slot=slot)
        return PreparedView(view, keyed, text)

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


class ViewBuilder:
    """Builds the views of batches from the rows of a round."""

    def __init__(self, assembly: Assembly, rows: TrainingRows) -> None:
        self.assembly = assembly
        self.rows = rows
        self._same: dict[str, int] = {}
        self._known: dict[tuple[str, str], tuple[Tensor, Tensor, Tensor]] = {}
        self.came: set[str] = set()

    def tokenise(self, reporter: Reporter) -> None:
        """Tokenise what the round's steps will ask for, as far as the plan tells it."""
        rank = distributed.rank_and_size()[0]
        if rank:
            distributed.barrier()  # the first process makes the tables, the others read them
        composition, encoders = self.assembly.composition, self.assembly.encoders
        views = {view.name: view for view in composition.views}
        needs = {part.path: part.requires for part in composition.parts}
        for planned in composition.passes:
            for name in planned.views:
                maker = views[name].made_by
                if maker is not None:
                    alone = [need[0] for need in needs[maker] if len(need) == 1]
                    columns = [need.name for need in alone if need.kind == "column"]
                else:
                    columns = [] if self._of(name, "text") else [self.column(name)]
                for column in columns:
                    if self.rows.ahead and column in self.rows.columns:
                        tokenizer = self._tokenizer(name, encoders[planned.branch])
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
        owner = None if view.owner is None else view.owner.cpu()
        tokens = encoder.rows(self._content(view, ctx, encoder), view.name)
        if encoder.tokenizer is self.assembly.online.tokenizer:
            for augmenter in self._of(view.name, "tokens"):
                tokens = self.augment(augmenter, tokens, tokens, view, ctx)
        return PreparedView.of(view, encoder.clip(tokens), owner, ctx.first)

    def augment(
        self,
        augmenter: BoundAugmenter,
        x: Any,
        tokens: TokenBatch | None,
        view: View,
        ctx: Context,
        watch: bool = True,
    ) -> Any:
        """Change texts, tokens or ``[T, E]`` embeddings of a view by an augmenter with its draws.

        With ``watch`` it is noted if it changes nothing, in the first calls.
        """
        path = augmenter.planned.path
        given = list(x) if isinstance(x, list) else x  # a list can be changed in place
        ctx = ctx.replace(place=(path, view.name))
        changed = self.assembly.calls(augmenter.part, "__call__", given, tokens, view, ctx)
        seen = self._same.get(path, 0)
        if watch and 0 <= seen < MAX_WATCHED_CALLS:
            self._same[path] = seen + 1 if _equal(changed, x) else -1
        return changed

    def unchanged(self) -> Mapping[str, int]:
        """Count the calls of each augmenter that never changed anything."""
        return {path: count for path, count in self._same.items() if count > 0}

    def _views(self, ctx: Context) -> list[View]:
        planned = {view.name: view for view in self.assembly.composition.views}
        views = [
            View(view.name, view.role, view.branch)
            for view in planned.values()
            if view.made_by is None
        ]
        rows = self.rows.corpus_row[ctx.index]
        for part in self.assembly.parts.values():
            for added in self.assembly.calls(part, "views", rows, ctx):
                if added.name not in planned:
                    raise PartError(part, "views", f"adds {added.name}, which its record omits")
                self.came.add(added.name)
                view = planned[added.name]
                views.append(replace(added, branch=view.branch, role=view.role))
        return views

    def _content(self, view: View, ctx: Context, encoder: SentenceEncoder) -> TokenBatch:
        augmenters, tokenizer = self._of(view.name, "text"), self._tokenizer(view.name, encoder)
        texts = view.texts
        same = encoder.tokenizer is self.assembly.online.tokenizer
        if view.tokens is not None and same and (texts is None or not augmenters):
            return replace(view.tokens, owner=torch.arange(view.tokens.rows))
        if texts is None:
            column = self.column(view.name)
            if not augmenters:
                return self.rows.content(column, ctx.index, tokenizer)
            texts = self.rows.texts(column, ctx.index)
        for augmenter in augmenters:
            texts = self.augment(augmenter, list(texts), None, view, ctx)
        return tokenizer.content(texts, tokenizer.longest or self.rows.longest)

    def _tokenizer(self, view: str, encoder: SentenceEncoder) -> Tokenizer:
        """Return a branch's tokenizer, the run's own with the prompt of a view that has one."""
        planned, online = self.assembly.composition.view(view), self.assembly.online.tokenizer
        if planned is None or encoder.tokenizer is not online:  # another model has its own prompts
            return encoder.tokenizer
        return online.with_prompt(planned.prompt)

    def known(self, view: View, branch: str, index: Tensor) -> tuple[Tensor, Tensor] | None:
        """Return vectors ``[b, D]`` and lengths ``[b]`` of rows by a branch that keeps them.

        None where it does not, or where a part makes or changes the texts. The processes make the
        vectors together.
        """
        encoder, planned = self.assembly.encoders[branch], self.assembly.composition.view(view.name)
        kept = self.assembly.branches[branch].cached and encoder.slicer is None
        if not kept or planned is None or planned.made_by or self._of(view.name, "text"):
            return None
        if encoder.prompt(view.name) != encoder.prompt("anchor"):  # which the table gets
            return None
        column = self.column(view.name)
        if (branch, column) not in self._known:
            table, place = self.rows.tokenise(column, encoder.tokenizer)
            lengths = table.offsets.diff().clamp_max(encoder.max_length)
            make = partial(encoder.encode_table, table, self.assembly.device, shared=True)
            vectors = self.rows.make_vectors(table, encoder, make)
            self._known[branch, column] = vectors, lengths, place
        vectors, lengths, place = self._known[branch, column]
        texts = place[index]
        return vectors[texts], lengths[texts]

    def column(self, view: str) -> str:
        """Return the column of a core view's texts in this round."""
        if self.rows.pairs is not None and view in self.rows.pairs:
            return view
        planned = self.assembly.composition.view(view)
        column = planned.column if planned is not None and planned.column else "text"
        return column if column in self.rows.columns else "text"

    def _of(self, view: str, point: str) -> list[BoundAugmenter]:
        return [
            augmenter
            for augmenter in self.assembly.augmenters
            if augmenter.point == point and view in augmenter.views
        ]


def _equal(one: Any, two: Any) -> bool:
    if isinstance(one, Tensor):
        return torch.equal(one, two)
    if isinstance(one, TokenBatch):
        return one is two or all(
            torch.equal(*(getattr(x, n) for x in (one, two))) for n in _COMPARED
        )
    return bool(one == two)
