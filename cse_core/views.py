"""The views of a batch as tokens: texts and their augmenters, wrapped rows and theirs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from cse_core.assembly import Assembly, PlacedAugmenter
from cse_core.rows import TrainingRows
from cse_core.stack import Stack
from cse_core.types import StepContext, TokenBatch, View


@dataclass(frozen=True)
class PreparedView:
    """A view ready for the encoder.

    Attributes:
        tokens: Wrapped rows; ``owner`` numbers the view's texts, in order.
        owner: ``[texts]`` batch row of each text.
        own_rows: Whether text i belongs to batch row i, as in the core's own views.
    """

    view: View
    tokens: TokenBatch
    owner: Tensor
    own_rows: bool

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
        self._same: dict[str, int] = {}

    def build(self, index: Tensor, rows: Tensor, ctx: StepContext) -> dict[str, PreparedView]:
        """Return all views of this process's rows, by name.

        Args:
            index: ``[b]`` rows of the round.
            rows: ``[b]`` their corpus rows.
            ctx: The step.
        """
        return {
            view.name: self.prepare(view, index, ctx, self.assembly.stacks[view.branch])
            for view in self._views(rows, ctx)
        }

    def prepare(self, view: View, index: Tensor, ctx: StepContext, stack: Stack) -> PreparedView:
        """Return a view as the rows of a branch's encoder."""
        own = view.owner is None
        count = len(index) if own else len(view.owner)  # type: ignore[arg-type]
        owner = torch.arange(count) if view.owner is None else view.owner
        content = self._content(view, index, ctx, stack)
        tokens = stack.rows(content, view.role)
        if stack.tokenizer is self.assembly.stack.tokenizer:
            for augmenter in self._of(view.name, "tokens"):
                before = tokens
                tokens = augmenter.part(tokens, tokens, view, ctx)
                self.watch(augmenter, tokens is before or _same(tokens, before))
        return PreparedView(view, stack.clip(tokens), owner, own)

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

    def _content(self, view: View, index: Tensor, ctx: StepContext, stack: Stack) -> TokenBatch:
        augmenters = self._of(view.name, "text")
        texts = view.texts
        if view.tokens is not None and stack.tokenizer is self.assembly.stack.tokenizer:
            return replace(view.tokens, owner=torch.arange(view.tokens.rows))
        if texts is None:
            column = self.column(view.name)
            if not augmenters:
                return self.rows.content(column, index, stack.tokenizer)
            texts = self.rows.texts(column, index)
        for augmenter in augmenters:
            before = list(texts)
            texts = augmenter.part(before, None, view, ctx)
            self.watch(augmenter, list(texts) == before)
        return stack.tokenizer.content(texts, self.rows.longest)

    def column(self, view: str) -> str:
        """Return the column of a core view's texts in this round."""
        if self.rows.pairs is not None:
            return view if view in self.rows.pairs else "text"
        planned = self.assembly.composition.view(view)
        return planned.column if planned is not None and planned.column else "text"

    def _of(self, view: str, point: str) -> list[PlacedAugmenter]:
        return [
            each for each in self.assembly.augmenters if each.point == point and view in each.views
        ]


def _same(one: TokenBatch, other: TokenBatch) -> bool:
    return (
        torch.equal(one.offsets, other.offsets)
        and torch.equal(one.ids, other.ids)
        and torch.equal(one.positions, other.positions)
    )
