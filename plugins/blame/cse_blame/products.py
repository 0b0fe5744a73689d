"""Gradient products of the rows of a batch with the similarity of a pair.

TracIn (Pruthi et al.: Estimating Training Data Influence by Tracing Gradient Descent, NeurIPS 2020,
section 3.3) sums ``eta . grad loss(z) . grad loss(z')`` over checkpoints. Here ``loss(z')`` is the
negative similarity of two texts, and a contrastive loss is one of a whole batch, which is split
into its rows at their own vectors: docs/blame.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from cse import CseError, Session
from cse_core.functional import unit
from cse_core.parts import Part, TokenLoss
from cse_core.types import Embeddings, TokenStates

STEP = 0.01
"""Change of the pair's similarity, as a share of its scale, by which weights are moved."""
Levels = Mapping[str, Mapping[str, Embeddings]]


@dataclass(frozen=True)
class Pair:
    """Two texts and how their vectors are compared: as the saved model does."""

    query: str
    document: str
    kind: str

    def vectors(self, session: Session) -> tuple[Tensor, Tensor]:
        """Return both vectors ``[1, D]`` with gradient, each with the prompt of its role."""
        return session.embed([self.query], "query"), session.embed([self.document], "document")

    def of(self, left: Tensor, right: Tensor) -> Tensor:
        """Return the similarity of vectors ``[1, D]``, a scalar; distances are negative."""
        if self.kind in ("euclidean", "manhattan"):
            return -torch.linalg.vector_norm(left - right, ord=2 if self.kind == "euclidean" else 1)
        return (unit(left) * unit(right) if self.kind == "cosine" else left * right).sum()

    def similarity(self, session: Session) -> float:
        """Return the similarity by a session's weights."""
        with torch.no_grad():
            return float(self.of(*self.vectors(session)))

    def gradient(self, session: Session) -> tuple[float, float, dict[str, Tensor]]:
        """Return the similarity, its scale, and its gradient by name of the trained weights.

        The scale is 1 for a cosine, and the size of the numbers otherwise. Weights that the saved
        model does not use are left out.
        """
        left, right = self.vectors(session)
        value = self.of(left, right)
        gradient = {}
        if value.requires_grad:
            # Not by autograd.grad: word tables add to the gradient of their weight themselves.
            value.backward()
        for name, weight in session.trained.items():
            if weight.grad is not None:
                gradient[name], weight.grad = weight.grad.clone(), None
        scale = {"cosine": 1.0, "dot": float((left.norm() * right.norm()).detach())}.get(
            self.kind, abs(float(value.detach()))
        )
        return float(value.detach()), scale, gradient


@dataclass(frozen=True)
class Moved:
    """What a step moved the similarity, to first order and at its learning rate.

    Attributes:
        rows: ``[B]`` rows of the round.
        by: ``[B]`` what it moved by each row: by the losses of the batch, less by those of the
            batch without the row, with the same vectors of the others.
        parts: ``[B]`` the part of the batch's product that flows through the vectors of each row.
        whole: By the gradient of the batch: the sum of the parts.
    """

    rows: Tensor
    by: Tensor
    parts: Tensor
    whole: float


@dataclass
class Products:
    """Makes the steps of a session without moving its weights, and splits each among its rows.

    Args:
        session: Where a checkpoint stands.
        pair: The texts.
        moments: Roots of AdamW's second moments, by name: what a step divides the gradient of a
            weight by. Without any, a step is that of plain gradient descent.
        size: By how much the similarity changes, as a share of its scale, where weights are moved
            to measure how the vectors of rows change: a central difference.

    Attributes:
        before: The similarity by the session's weights.

    Raises:
        CseError: If no weight that is trained moves the similarity.
    """

    session: Session
    pair: Pair
    moments: Mapping[str, Tensor] = field(default_factory=dict)
    size: float = STEP

    def __post_init__(self) -> None:
        self.before, self.scale, self.gradient = self.pair.gradient(self.session)
        size = sum(float(g.double().square().sum()) for g in self.gradient.values())
        if not size > 1e-12 * self.scale**2:
            what = "no trained weight changes their similarity"
            hint = "name two texts that differ, which the model does not read as the same"
            raise CseError(what, where="the pair", value=self.pair.document, hint=hint)
        weights = self.session.trained
        self.weights = {name: weights[name].detach().clone() for name in self.gradient}
        self.divided = self.gradient
        if self.moments:
            stepped = self.gradient.keys() & self.moments.keys()
            self.divided = {n: self.gradient[n] / _filled(self.moments[n]) for n in stepped}
        groups = self.session.adamw.param_groups
        peaks = {weight: group["peak"] for group in groups for weight in group["params"]}
        self.peaks = {name: peaks[weights[name]] for name in self.gradient}
        self.direction: dict[str, Tensor] = {}
        self.parts = self.without = torch.zeros(0)
        self.whole, self.clipped = 0.0, 1.0
        self.states: dict[Any, Mapping[str, TokenStates]] = {}
        self.session.watch(self._see)
        self.session.before_backward(self._split)
        self.session.before_update(self._forget)

    def step(self, number: int) -> Moved:
        """Replay a step.

        Args:
            number: Of the step, from 0.
        """
        rate = self.session.rate(number)
        self.direction = {n: g * (rate * self.peaks[n]) for n, g in self.divided.items()}
        self.session.done = number
        rows = self.session.batch(number)
        self.parts, self.without = torch.zeros(2, len(rows), dtype=torch.float64)
        self.whole, self.clipped = 0.0, 1.0
        self.session.step()
        sign = -self.clipped
        return Moved(rows, sign * self.without, sign * self.parts, sign * self.whole)

    def _see(self, part: Part, method: str, given: tuple[Any, ...], _: Any) -> None:
        if isinstance(part, TokenLoss) and method == "sums":
            self.states[part.path, given[1].chunk] = given[0]

    def _split(
        self,
        value: Tensor,
        vectors: Levels,
        again: Callable[[], Levels],
        value_of: Callable[[Levels], Tensor | None],
    ) -> None:
        """Multiply gradients at the rows' vectors with their change along the direction."""
        tensors = self._tensors(vectors)
        wanted = {key: rows for key, (rows, _) in tensors.items() if rows.requires_grad}
        slope = sum(float((self.gradient[n] * d).sum()) for n, d in self.direction.items())
        if not (wanted and slope and value.requires_grad):
            return
        size = self.size * self.scale / slope
        there, back = (self._at(way * size, again) for way in (1, -1))
        change = {key: (there[key].double() - back[key].double()) / (2 * size) for key in wanted}
        gradients = torch.autograd.grad(
            value, list(wanted.values()), retain_graph=True, allow_unused=True
        )
        for key, gradient in zip(wanted, gradients, strict=True):
            if gradient is not None:
                parts = (gradient.double() * change[key]).flatten(1).sum(dim=1)
                self.parts.index_add_(0, tensors[key][1].cpu(), parts.cpu())
                if key[0] not in vectors:  # a row's token states do not see other rows
                    self.without.index_add_(0, tensors[key][1].cpu(), parts.cpu())
        self._leave_out(vectors, change, value_of)

    def _leave_out(
        self,
        vectors: Levels,
        change: Mapping[Any, Tensor],
        value_of: Callable[[Levels], Tensor | None],
    ) -> None:
        """Add the product of the batch's losses less that of the losses without each row."""
        leaves = {
            view: {
                level: replace(
                    rows, vectors=rows.vectors.detach().requires_grad_((view, level) in change)
                )
                for level, rows in levels.items()
            }
            for view, levels in vectors.items()
        }
        inputs = {
            (view, level): rows.vectors
            for view, levels in leaves.items()
            for level, rows in levels.items()
            if rows.vectors.requires_grad
        }

        def product(some: Levels) -> float:
            value = value_of(some)
            if value is None or not value.requires_grad:
                return 0.0
            made = torch.autograd.grad(value, list(inputs.values()), allow_unused=True)
            products = (
                (gradient.double() * change[key]).sum()
                for key, gradient in zip(inputs, made, strict=True)
                if gradient is not None
            )
            return float(sum(products))

        count = len(self.without)
        whole = product(leaves)
        for row in range(count):
            others = 0.0
            if count > 1:
                others = product(
                    {
                        view: {
                            level: rows.take(rows.owner != row) for level, rows in levels.items()
                        }
                        for view, levels in leaves.items()
                    }
                )
            self.without[row] += whole - others

    def _at(self, size: float, again: Callable[[], Levels]) -> dict[Any, Tensor]:
        """Encode the batch once more by weights that are moved along the direction."""
        trained = self.session.trained
        for name, step in self.direction.items():
            # By .data: the graph of the step keeps these weights, which are put back below.
            trained[name].data.add_(step, alpha=size)
        made = {key: rows.detach() for key, (rows, _) in self._tensors(again()).items()}
        for name, weight in self.weights.items():
            trained[name].data.copy_(weight)
        return made

    def _tensors(self, vectors: Levels) -> dict[Any, tuple[Tensor, Tensor]]:
        """Return what the losses are made of, ``[N, D]``, with the ``[N]`` batch rows of each."""
        made: dict[Any, tuple[Tensor, Tensor]] = {
            (view, level): (rows.vectors, rows.owner)
            for view, levels in vectors.items()
            for level, rows in levels.items()
        }
        for key, views in self.states.items():
            for view, states in views.items():
                rows = states.tokens.owner[states.tokens.row_of_token()]
                made[key, view] = states.states, rows
                made |= {(key, view, n): (layer, rows) for n, layer in states.layers.items()}
        self.states = {}
        return made

    def _forget(self) -> None:
        """Take the whole batch's product from its gradient, and leave no gradient to a step.

        A gradient that the run clips moves the weights by so much less.
        """
        most = self.session.composition.train.clip
        norms = [w.grad.norm() for w in self.session.trained.values() if w.grad is not None]
        if most and norms:
            self.clipped = min(1.0, most / (float(torch.stack(norms).norm()) + 1e-6))
        for name, weight in self.session.trained.items():
            if weight.grad is not None and name in self.direction:
                self.whole += float((weight.grad * self.direction[name]).sum(dtype=torch.float64))
            weight.grad = None


def second_moments(session: Session) -> dict[str, Tensor]:
    """Return the roots of AdamW's second moments by name; weights without a step have none.

    They are corrected for their start at zero (Kingma and Ba: Adam, ICLR 2015, algorithm 1).
    """
    made = {}
    for group in session.adamw.param_groups:
        for weight in group["params"]:
            if state := session.adamw.state.get(weight):
                left = 1 - group["betas"][1] ** float(state["step"])
                made[weight] = (state["exp_avg_sq"] / left).sqrt()
    return {name: made[weight] for name, weight in session.trained.items() if weight in made}


def _filled(moments: Tensor) -> Tensor:
    """Give weights without a gradient so far the quadratic mean of the others of their tensor.

    Word embeddings of words that were not seen are such: divided by zero, they would be all.
    """
    seen = moments > 0
    mean = moments.square().sum().div(seen.sum().clamp_min(1)).sqrt()
    return torch.where(seen, moments, mean.clamp_min(torch.finfo(moments.dtype).tiny))
