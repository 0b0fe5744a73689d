"""The views of a batch as tokens: texts and their augmenters, wrapped rows and theirs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from cse_core.engine.assembly import Assembly, PlacedAugmenter
from cse_core.engine.prefetch import PlainView, PrefetchedView, Prefetcher
from cse_core.models.sentence_encoder import SentenceEncoder
from cse_core.runtime import distributed
from cse_core.runtime.reporter import Reporter
from cse_core.runtime.seeds import StepPosition, draws
from cse_core.tokenization.training_rows import TrainingRows
from cse_core.types import StepContext, TokenBatch, View

SLOTS = 2**10
"""Room for the slots of one text, where a batch row has several texts in a view."""
WATCHED_CALLS = 40
"""Calls after which an augmenter that changed nothing is no longer watched."""


@dataclass(frozen=True)
class PreparedView:
    """A view ready for the encoder.

    Attributes:
        tokens: Wrapped rows; ``owner`` numbers the view's texts, in order.
        owner: ``[texts]`` batch row of each text, counted from this process's first.
        repeats: ``[texts]`` how many earlier texts belong to the same batch row.
        own_rows: Whether text i belongs to batch row i, as in the core's own views.
    """

    view: View
    tokens: TokenBatch
    owner: Tensor
    repeats: Tensor
    own_rows: bool

    def has_rows_of(self, other: PreparedView) -> bool:
        """Return whether both views have rows of the same keys in the same order."""
        one, two = self.tokens, other.tokens
        return torch.equal(one.owner, two.owner) and torch.equal(one.slot, two.slot)

    def has_owners_of(self, other: PreparedView) -> bool:
        """Return whether both views have rows of the same sentences, in the same order."""
        one, two = (torch.unique_consecutive(each.tokens.owner) for each in (self, other))
        return torch.equal(one, two)

    def of_owners(self, start: int, stop: int) -> TokenBatch:
        """Return the rows whose batch rows are in ``[start, stop)``."""
        owner = self.owner[self.tokens.owner]
        inside = (owner >= start) & (owner < stop)
        if bool(inside.all()):
            return self.tokens
        return self.tokens.take_rows(inside.nonzero().squeeze(1))


class ViewBuilder:
    """Builds the views of batches.

    Args:
        assembly: The run's parts.
        rows: The rows of the round.
    """

    def __init__(self, assembly: Assembly, rows: TrainingRows) -> None:
        self.assembly = assembly
        self.rows = rows
        self.prefetcher = Prefetcher(rows.content)
        self._same: dict[str, int] = {}

    def tokenise(self, reporter: Reporter) -> None:
        """Tokenise what the round's steps will ask for, as far as the plan tells it.

        Args:
            reporter: Who hears how far a large column is.
        """
        rank = distributed.world()[0]
        if rank:
            distributed.wait()  # the first process makes the tables, the others read them
        self._tokenise(reporter)
        if not rank:
            distributed.wait()

    def _tokenise(self, reporter: Reporter) -> None:
        composition, encoders = self.assembly.composition, self.assembly.encoders
        needs = {part.path: part.spec.required(part.options) for part in composition.parts}
        for planned in composition.passes:
            for name in planned.views:
                view = composition.view(name)
                if view is None:
                    continue
                columns = []
                if view.made_by is not None:
                    named = [need for need in needs[view.made_by] if isinstance(need, str)]
                    columns = [need[7:] for need in named if need.startswith("column:")]
                elif not self._of(name, "text"):
                    columns = [self.column(name)]
                for column in columns:
                    if column in self.rows.columns:
                        self.rows.tokenise(column, encoders[planned.branch].tokenizer, reporter)

    def expect(self, index: Tensor) -> None:
        """Begin to prepare a batch that this process will build next.

        Args:
            index: ``[b]`` rows of the round.
        """
        views = [
            PlainView(view.name, view.role, column, sentence_encoder)
            for view in self.assembly.composition.views
            if view.made_by is None and not self._of(view.name, "text")
            for column, sentence_encoder in [
                (self.column(view.name), self.assembly.encoders[view.branch])
            ]
            if self.rows.is_tokenised(column, sentence_encoder.tokenizer)
        ]
        self.prefetcher.expect(index, views)

    def build(self, index: Tensor, rows: Tensor, ctx: StepContext) -> dict[str, PreparedView]:
        """Return all views of this process's rows, by name.

        Args:
            index: ``[b]`` rows of the round.
            rows: ``[b]`` their corpus rows.
            ctx: The step.
        """
        ready = self.prefetcher.take(index)
        built = {}
        for view in self._views(rows, ctx):
            of_column = view.texts is None and view.tokens is None
            ahead = ready.get(view.name) if of_column else None
            sentence_encoder = self.assembly.encoders[view.branch]
            built[view.name] = self.prepare(view, index, ctx, sentence_encoder, ahead)
        return built

    def prepare(
        self,
        view: View,
        index: Tensor,
        ctx: StepContext,
        sentence_encoder: SentenceEncoder,
        ahead: PrefetchedView | None = None,
    ) -> PreparedView:
        """Return a view as the rows of a branch's encoder.

        Args:
            view: The view.
            index: ``[b]`` rows of the round.
            ctx: The step.
            sentence_encoder: Of the branch that encodes it.
            ahead: What is ready of it, where its texts are a column's as they are.
        """
        own = view.owner is None
        count = len(index) if own else len(view.owner)  # type: ignore[arg-type]
        owner = torch.arange(count) if view.owner is None else view.owner.cpu()
        content = (
            self._content(view, index, ctx, sentence_encoder) if ahead is None else ahead.content
        )
        if content.rows != count:
            raise RuntimeError(f"view {view.name} has {content.rows} texts for {count} owners")
        tokens = None if ahead is None else ahead.rows_in(sentence_encoder.pooler.prompt(view.role))
        if tokens is None:
            tokens = sentence_encoder.rows(content, view.role)
        if sentence_encoder.tokenizer is self.assembly.online.tokenizer:
            for augmenter in self._of(view.name, "tokens"):
                before = tokens
                tokens = augmenter.part(tokens, tokens, view, self._drawing(ctx, augmenter, view))
                if not torch.equal(tokens.owner, before.owner):
                    raise RuntimeError(f"{augmenter.choice.path} changed the rows of {view.name}")
                if self.watches(augmenter):
                    self.watch(augmenter, tokens is before or _same(tokens, before))
        repeats = torch.zeros_like(owner) if own else _repeats(owner)
        return PreparedView(view, sentence_encoder.clip(tokens), owner, repeats, own)

    def _drawing(self, ctx: StepContext, augmenter: PlacedAugmenter, view: View) -> StepContext:
        seed, rank = self.assembly.composition.train.seed, distributed.world()[0]
        position = StepPosition(ctx.step, ctx.total_steps, ctx.epoch, ctx.round)
        place = draws(seed, position, rank, augmenter.choice.path, view.name)
        return replace(ctx, generator=place)

    def watches(self, augmenter: PlacedAugmenter) -> bool:
        """Return whether it is still to be seen if an augmenter ever changes anything."""
        return 0 <= self._same.get(augmenter.choice.path, 0) < WATCHED_CALLS

    def watch(self, augmenter: PlacedAugmenter, unchanged: bool) -> None:
        """Note whether an augmenter changed nothing, in the first steps."""
        path = augmenter.choice.path
        seen = self._same.get(path, 0)
        if seen >= 0:
            self._same[path] = seen + 1 if unchanged else -1

    def unchanged(self) -> Mapping[str, int]:
        """Return how often each augmenter that never changed anything was called."""
        return {path: count for path, count in self._same.items() if count > 0}

    def _views(self, rows: Tensor, ctx: StepContext) -> list[View]:
        views = [
            View(planned.name, planned.role, planned.branch)
            for planned in self.assembly.composition.views
            if planned.made_by is None
        ]
        planned = {view.name: view for view in self.assembly.composition.views}
        for path, part in self.assembly.parts.items():
            for view in part.views(rows, ctx):
                plan = planned.get(view.name)
                if plan is None:
                    raise RuntimeError(f"{path} adds view {view.name}, which its record omits")
                views.append(replace(view, branch=plan.branch, role=plan.role))
        return views

    def _content(
        self, view: View, index: Tensor, ctx: StepContext, sentence_encoder: SentenceEncoder
    ) -> TokenBatch:
        augmenters = self._of(view.name, "text")
        texts = view.texts
        own = sentence_encoder.tokenizer is self.assembly.online.tokenizer
        if view.tokens is not None and own and (texts is None or not augmenters):
            return replace(view.tokens, owner=torch.arange(view.tokens.rows))
        if texts is None:
            column = self.column(view.name)
            if not augmenters:
                return self.rows.content(column, index, sentence_encoder.tokenizer)
            texts = self.rows.texts(column, index)
        for augmenter in augmenters:
            before = list(texts)
            texts = augmenter.part(before, None, view, self._drawing(ctx, augmenter, view))
            if len(texts) != len(before):
                raise RuntimeError(
                    f"{augmenter.choice.path} made {len(texts)} of {len(before)} texts"
                )
            self.watch(augmenter, list(texts) == before)
        known = self.rows.content_of(texts, sentence_encoder.tokenizer)
        return (
            sentence_encoder.tokenizer.content(texts, self.rows.longest) if known is None else known
        )

    def column(self, view: str) -> str:
        """Return the column of a core view's texts in this round."""
        planned = self.assembly.composition.view(view)
        column = planned.column if planned is not None and planned.column else "text"
        if self.rows.pairs is not None and view in self.rows.pairs:
            return view
        return column if column in self.rows.columns else "text"

    def _of(self, view: str, point: str) -> list[PlacedAugmenter]:
        return [
            each for each in self.assembly.augmenters if each.point == point and view in each.views
        ]


def _repeats(owner: Tensor) -> Tensor:
    """Return ``[R]`` how many earlier rows have the same owner."""
    order = torch.argsort(owner, stable=True)
    ordered = owner[order]
    first = torch.searchsorted(ordered, ordered)
    repeats = torch.empty_like(owner)
    repeats[order] = torch.arange(len(owner)) - first
    return repeats


def _same(one: TokenBatch, other: TokenBatch) -> bool:
    return (
        torch.equal(one.offsets, other.offsets)
        and torch.equal(one.ids, other.ids)
        and torch.equal(one.positions, other.positions)
    )
