"""The suite of losses."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any, cast

import torch
from torch import Tensor, nn

from cse_core.engine import negatives as core
from cse_core.errors import CseError
from cse_core.options import LossOptions
from cse_core.parts import Part
from cse_core.runtime.seeds import generator
from cse_core.types import Batch, LossOutput, Negatives, Positives, StepContext
from cse_testkit.part_suite import PartSuite
from cse_testkit.promises import NotMeant

_MASKS = ("none", "some", "all")
_WEIGHTS = ("zero", "random", "some -inf", "all -inf")


class LossSuite(PartSuite):
    """What a loss promises, beside what every part does.

    Give ``slow``, an obvious version in loops, and the suite compares with it in float64::

        class TestInfonce(LossSuite):
            part = ("loss", "infonce")

            def slow(self, batch, targets, negatives, ctx, options):
                ...
                return total / len(batch.anchors)

    Attributes:
        tolerance: Greatest relative difference from ``slow``.
    """

    tolerance: float = 1e-9

    def slow(
        self,
        batch: Batch,
        targets: Positives,
        negatives: Negatives,
        ctx: StepContext,
        options: Any,
    ) -> Tensor | float | None:
        """Return the loss by a slow and obvious way; None where the suite has none."""
        return None

    # -- the shapes and values that it must take ---------------------------------------------

    def promise_its_gradient_reaches_the_vectors(self) -> None:
        """The value of some ordinary batch has a gradient for the anchors or the positives."""
        reached = False
        for seed in range(4):
            batch = self.batch()
            noise = torch.randn(batch.anchors.shape, generator=_draws(f"anchors {seed}"))
            batch = replace(batch, anchors=batch.anchors + seed * noise)
            negatives = self.negatives(batch, 6, "some", "random")
            value, gradients = self._gradients("a batch", batch, self.targets(batch), negatives)
            assert value.requires_grad, "its value carries no gradient: is it detached?"
            reached = reached or any(bool(gradient.any()) for gradient in gradients)
        assert reached, "four batches leave no gradient for anchors, positives and candidates"

    def promise_takes_no_candidates(self) -> None:
        """N = 0 gives a finite value."""
        batch = self.batch()
        self._gradients("no candidates", batch, self.targets(batch), core.no_negatives(batch))

    def promise_takes_one_row(self) -> None:
        """A = 1 gives a finite value, with and without candidates."""
        batch = self.batch(sentences=1)
        for negatives in (core.no_negatives(batch), self.negatives(batch, 5, "none", "zero")):
            self._gradients("one row", batch, self.targets(batch), negatives)

    def promise_takes_any_mask_and_weights(self) -> None:
        """Value and gradients are finite for any mask and weights, minus infinity among them."""
        for dtype in (torch.float32, torch.float64):
            for label, batch, targets, negatives in self.cases(dtype):
                self._gradients(f"{label}, {dtype}", batch, targets, negatives)

    def promise_takes_several_positives(self) -> None:
        """P = 3 with weights, an anchor without any among them, gives a finite value."""
        batch = self.batch()
        rows, dimension = batch.anchors.shape
        vectors = torch.randn(rows, 3, dimension, generator=_draws("positives"))
        some = torch.ones(rows, 3)
        some[0] = 0
        some[-1, 1:] = 0
        negatives = self.negatives(batch, 5, "some", "random")
        for weights in (None, torch.ones(rows, 3), some, torch.zeros(rows, 3)):
            label = f"three positives, weights {weights}"
            self._gradients(label, batch, Positives(vectors, weights), negatives)

    # -- what its value depends on -----------------------------------------------------------

    def promise_a_masked_candidate_does_not_count(self) -> None:
        """A candidate that is masked for every anchor changes nothing, nor does one of weight 0."""
        batch = self.batch()
        targets, few = self.targets(batch), self.negatives(batch, 5, "some", "random")
        value = self.value(batch, targets, few)
        for label, mask, weights in (
            ("masked", "all", "zero"),
            ("weightless", "none", "all -inf"),
        ):
            more = self.negatives(batch, 3, mask, weights)
            other = self.value(batch, targets, Negatives.join([few, more]))
            _unchanged(f"candidates that are {label} change it", value, other)

    def promise_a_positive_of_weight_zero_does_not_count(self) -> None:
        """Where a positive has weight 0, another vector in its place changes nothing."""
        batch = self.batch()
        rows, dimension = batch.anchors.shape
        vectors = torch.randn(rows, 2, dimension, generator=_draws("two positives"))
        other = vectors.clone()
        other[:, 1] = torch.randn(rows, dimension, generator=_draws("another positive"))
        negatives = self.negatives(batch, 5, "some", "random")
        weights = torch.tensor([[1.0, 0.0]]).repeat(rows, 1)
        one, two = (self.value(batch, Positives(v, weights), negatives) for v in (vectors, other))
        _unchanged(
            "the vector of a positive of weight 0 (read targets.weights) changes it", one, two
        )

    def promise_its_reduction_is_that_of_its_options(self) -> None:
        """``reduction = sum`` gives the mean times the anchors, all of which have a positive."""
        batch = self.batch()
        values = []
        for reduction in ("mean", "sum"):
            try:
                rig = self.trial().fresh(f"{self.trial().path}.reduction={reduction}")
            except CseError as error:
                raise NotMeant(f"it refuses reduction = {reduction}: {error.line()}") from None
            made = rig.assembly.parts[self.trial().path]
            negatives = self.negatives(batch, 5, "none", "zero")
            output = self._call(batch, self.targets(batch), negatives, part=made)
            values.append(float(output.value.detach()))
        mean, total = values
        assert abs(total - mean * len(batch.anchors)) <= 1e-3 * max(1.0, abs(total)), (
            f"reduction = sum gives {total}, mean {mean} for {len(batch.anchors)} anchors"
        )

    def promise_it_joins_rows_by_key(self) -> None:
        """Rows of views, or the anchors, in another order with their keys give the same loss."""
        batch = self.batch()
        negatives = self.negatives(batch, 5, "some", "random")
        order = torch.arange(len(batch.anchors)).flip(0)
        turned = {
            name: {level: rows.take(torch.arange(len(rows)).flip(0)) for level, rows in of.items()}
            for name, of in batch.views.items()
            if name != "anchor"
        }
        groups = {
            name: replace(
                group,
                vectors=group.vectors[order],
                weights=None if group.weights is None else group.weights[order],
            )
            for name, group in batch.targets.items()
        }
        anchors = replace(
            batch,
            anchors=batch.anchors[order],
            owner=batch.owner[order],
            slot=batch.slot[order],
            targets=groups,
        )
        seen = replace(
            negatives, mask=negatives.mask[order], log_weights=negatives.log_weights[order]
        )
        value = self.value(batch, self.targets(batch), negatives)
        for what, other, others in (
            ("rows of views", replace(batch, views={**batch.views, **turned}), negatives),
            ("anchors", anchors, seen),
        ):
            again = self.value(other, self.targets(other), others)
            what = f"{what} in another order (join by owner and slot) change it"
            _unchanged(what, value, again)

    def promise_equals_its_slow_version(self) -> None:
        """In float64 it equals ``slow``, where the suite gives one."""
        if type(self).slow is LossSuite.slow:
            raise NotMeant("the suite gives no slow version")
        for label, batch, targets, negatives in self.cases(torch.float64):
            fast = self.value(batch, targets, negatives).double()
            shown = self.slow(batch, targets, negatives, self.context(batch), self.loss_options())
            slow = torch.as_tensor(shown, dtype=torch.float64)
            assert bool(torch.isclose(fast, slow, rtol=self.tolerance, atol=self.tolerance)), (
                f"{label}: {float(fast)}, and by the slow version {float(slow)}"
            )

    # -- what they are made of -----------------------------------------------------------------

    def loss_options(self) -> LossOptions:
        """Return its options in the suite's run."""
        return cast(LossOptions, self.trial().planned.options)

    def batch(self, sentences: int = 4, dtype: torch.dtype = torch.float32) -> Batch:
        """Return a made-up batch with all that the loss requires."""
        return self.batch_at(self.loss_options().level, sentences=sentences, dtype=dtype)

    def targets(self, batch: Batch) -> Positives:
        """Return the loss's own targets of a batch."""
        return batch.targets[self.loss_options().target]

    def negatives(self, batch: Batch, count: int, mask: str, weights: str) -> Negatives:
        """Return made-up candidates.

        Args:
            batch: Its anchors see them.
            count: N.
            mask: ``none``, ``some`` or ``all``.
            weights: ``zero``, ``random``, ``some -inf`` or ``all -inf``.
        """
        rows, dimension = batch.anchors.shape
        dtype = batch.anchors.dtype
        draws = _draws(f"{count} {mask} {weights}")
        vectors = torch.randn(count, dimension, generator=draws, dtype=torch.float64).to(dtype)
        chance = torch.rand(rows, count, generator=draws)
        masked = {"none": chance < 0, "some": chance < 0.4, "all": chance >= 0}[mask]
        logs = torch.randn(rows, count, generator=draws, dtype=torch.float64).to(dtype)
        if weights == "zero":
            logs = torch.zeros_like(logs)
        if weights.endswith("-inf"):
            share = 0.4 if weights.startswith("some") else 2.0
            logs = logs.masked_fill(torch.rand(rows, count, generator=draws) < share, -torch.inf)
        return Negatives.of(vectors, rows, name="made up", mask=masked, log_weights=logs)

    def cases(self, dtype: torch.dtype) -> Iterator[tuple[str, Batch, Positives, Negatives]]:
        """Yield batches of one and four sentences with every mask and every kind of weights."""
        for sentences in (1, 4):
            batch = self.batch(sentences, dtype)
            targets = self.targets(batch)
            in_batch = core.negatives_for_loss(batch, self.loss_options(), ())
            yield f"{sentences} sentences, in-batch negatives", batch, targets, in_batch
            for mask in _MASKS:
                for weights in _WEIGHTS:
                    negatives = self.negatives(batch, 6, mask, weights)
                    label = f"{sentences} sentences, mask {mask}, weights {weights}"
                    yield label, batch, targets, negatives

    def value(self, batch: Batch, targets: Positives, negatives: Negatives) -> Tensor:
        """Return its value without a graph."""
        return self._call(batch, targets, negatives).value.detach()

    def _call(
        self, batch: Batch, targets: Positives, negatives: Negatives, part: Part | None = None
    ) -> LossOutput:
        part = part or self.trial().part
        if isinstance(part, nn.Module) and batch.anchors.dtype == torch.float64:
            part = deepcopy(part).double()
        context = self.context(batch)
        output = cast(Any, type(part)).__call__(part, batch, targets, negatives, context)
        assert isinstance(output, LossOutput), f"returned {type(output).__name__}, not a LossOutput"
        assert isinstance(output.value, Tensor), f"the value is a {type(output.value).__name__}"
        shape = tuple(output.value.shape)
        assert not shape, f"the value is not a scalar, its shape is {shape}"
        return output

    def _gradients(
        self, label: str, batch: Batch, targets: Positives, negatives: Negatives
    ) -> tuple[Tensor, list[Tensor]]:
        """Return its value and the gradients that there are; all must be finite."""
        vectors = (batch.anchors, targets.vectors, negatives.vectors)
        leaves = [each.detach().clone().requires_grad_(True) for each in vectors]
        output = self._call(
            replace(batch, anchors=leaves[0]),
            replace(targets, vectors=leaves[1]),
            replace(negatives, vectors=leaves[2]),
        )
        value = output.value
        assert bool(value.isfinite()), f"{label}: the value is {float(value.detach())}"
        for name, scalar in output.parts.items():
            assert isinstance(scalar, Tensor) and scalar.numel() == 1, (
                f"{label}: its part {name} is not a scalar tensor"
            )
        if not value.requires_grad:
            return value, []
        found = torch.autograd.grad(value, leaves, allow_unused=True)
        for name, gradient in zip(("anchors", "positives", "candidates"), found, strict=True):
            assert gradient is None or bool(gradient.isfinite().all()), (
                f"{label}: the gradient of the {name} is not finite"
            )
        return value, [gradient for gradient in found if gradient is not None]


def _draws(name: str) -> torch.Generator:
    """Return draws by a name, the same at each call."""
    return generator(torch.device("cpu"), "loss suite", name)


def _unchanged(what: str, one: Tensor, other: Tensor) -> None:
    assert bool(torch.isclose(one, other, rtol=1e-5, atol=1e-6)), (
        f"{what} from {float(one)} to {float(other)}"
    )
