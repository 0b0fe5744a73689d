"""The suite of losses."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any, cast

import pytest
import torch
from torch import Tensor, nn

from cse_core.engine import negatives as core
from cse_core.errors import CseError
from cse_core.options import LossOptions
from cse_core.parts import Part
from cse_core.types import Batch, LossOutput, Negatives, Positives, StepContext
from cse_testkit.loss_inputs import draws_of, in_order, some_weights
from cse_testkit.part_suite import PartSuite
from cse_testkit.promises import after, promise

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
    first = {
        "test_it_runs": (
            "test_its_gradient_reaches_the_vectors",
            "test_takes_any_mask_and_weights",
            "test_takes_several_positives",
        )
    }

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

    @after("test_it_is_made")
    def test_it_returns_one_number(self) -> None:
        """An ordinary batch gives a ``LossOutput`` with a scalar that is finite."""
        value = self._ordinary(0)[0].value
        promise(bool(value.isfinite()), f"the value is {float(value.detach())}")

    @after("test_it_returns_one_number")
    def test_its_gradient_reaches_the_vectors(self) -> None:
        """The value of some ordinary batch has a gradient for the anchors or the positives."""
        reached = False
        for seed in range(4):
            output, leaves = self._ordinary(seed)
            promise(output.value.requires_grad, "its value carries no gradient: is it detached?")
            gradients = torch.autograd.grad(output.value, leaves, allow_unused=True)
            reached = reached or any(g is not None and bool(g.any()) for g in gradients)
        promise(reached, "four batches leave no gradient for anchors, positives and candidates")

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    @after("test_takes_no_candidates", "test_takes_one_row")
    def test_takes_any_mask_and_weights(self, dtype: str) -> None:
        """Value and gradients are finite for any mask and weights, minus infinity among them."""
        for label, batch, targets, negatives in self.cases(getattr(torch, dtype)):
            self._check_finite(label, batch, targets, negatives)

    @after("test_it_returns_one_number")
    def test_takes_no_candidates(self) -> None:
        """N = 0 gives a finite value."""
        batch = self.batch()
        self._check_finite("no candidates", batch, self.targets(batch), core.nothing(batch))

    @after("test_it_returns_one_number")
    def test_takes_one_row(self) -> None:
        """A = 1 gives a finite value, with and without candidates."""
        batch = self.batch(sentences=1)
        targets = self.targets(batch)
        self._check_finite("one row alone", batch, targets, core.nothing(batch))
        self._check_finite("one row", batch, targets, self.negatives(batch, 5, "none", "zero"))

    @after("test_takes_any_mask_and_weights")
    def test_takes_several_positives(self) -> None:
        """P = 3 with weights, an anchor without any among them, gives a finite value."""
        batch = self.batch()
        rows, dimension = batch.anchors.shape
        vectors = torch.randn(rows, 3, dimension, generator=draws_of("positives"))
        for weights in (None, torch.ones(rows, 3), some_weights(rows, 3), torch.zeros(rows, 3)):
            targets = Positives(vectors, weights)
            self._check_finite(
                f"three positives, weights {weights}",
                batch,
                targets,
                self.negatives(batch, 5, "some", "random"),
            )

    @after("test_takes_any_mask_and_weights")
    def test_a_masked_candidate_does_not_count(self) -> None:
        """A candidate that is masked for every anchor changes nothing, nor does one of weight 0."""
        batch = self.batch()
        targets = self.targets(batch)
        few = self.negatives(batch, 5, "some", "random")
        value = self._value(batch, targets, few)
        rows = len(batch.anchors)
        away = Negatives.of(
            torch.randn(3, batch.anchors.shape[1], generator=draws_of("away")) * 3,
            rows,
            name="away",
            mask=torch.ones(rows, 3, dtype=torch.bool),
        )
        weightless = replace(
            away,
            mask=torch.zeros(rows, 3, dtype=torch.bool),
            log_weights=torch.full((rows, 3), -torch.inf),
        )
        for label, more in (("masked", away), ("of weight zero", weightless)):
            other = self._value(batch, targets, Negatives.join([few, more]))
            promise(
                bool(torch.isclose(value, other, rtol=1e-5, atol=1e-6)),
                f"candidates that are {label} change it from {float(value)} to {float(other)}",
            )

    @after("test_takes_several_positives")
    def test_a_positive_of_weight_zero_does_not_count(self) -> None:
        """Where a positive has weight 0, another vector in its place changes nothing."""
        batch = self.batch()
        rows, dimension = batch.anchors.shape
        vectors = torch.randn(rows, 2, dimension, generator=draws_of("two positives"))
        other = vectors.clone()
        other[:, 1] = torch.randn(rows, dimension, generator=draws_of("another positive"))
        negatives = self.negatives(batch, 5, "some", "random")
        weights = torch.tensor([[1.0, 0.0]]).repeat(rows, 1)
        one, two = (self._value(batch, Positives(v, weights), negatives) for v in (vectors, other))
        promise(
            bool(torch.isclose(one, two, rtol=1e-5, atol=1e-6)),
            f"the vector of a positive of weight 0 changes it from {float(one)} to {float(two)}: "
            "read targets.weights",
        )

    @after("test_it_returns_one_number")
    def test_its_reduction_is_that_of_its_options(self) -> None:
        """``reduction = sum`` gives the mean times the anchors, all of which have a positive."""
        values = []
        for reduction in ("mean", "sum"):
            try:
                rig = self.trial().fresh(f"{self.trial().path}.reduction={reduction}")
            except CseError as error:
                pytest.skip(f"it refuses reduction = {reduction}: {error.line()}")
            batch = self.batch()
            made = rig.assembly.parts[self.trial().path]
            targets, negatives = self.targets(batch), self.negatives(batch, 5, "none", "zero")
            output = self._call(batch, targets, negatives, torch.float32, made)
            values.append(float(output.value.detach()))
        mean, total = values
        promise(
            abs(total - mean * len(batch.anchors)) <= 1e-3 * max(1.0, abs(total)),
            f"reduction = sum gives {total}, mean {mean} for {len(batch.anchors)} anchors",
        )

    @after("test_it_returns_one_number")
    def test_it_joins_rows_by_key(self) -> None:
        """Rows of views, or the anchors, in another order with their keys give the same loss."""
        batch = self.batch()
        negatives = self.negatives(batch, 5, "some", "random")
        turned = {
            name: {level: rows.take(torch.arange(len(rows)).flip(0)) for level, rows in of.items()}
            for name, of in batch.views.items()
            if name != "anchor"
        }
        order = torch.arange(len(batch.anchors)).flip(0)
        anchors_turned = replace(
            batch,
            anchors=batch.anchors[order],
            owner=batch.owner[order],
            slot=batch.slot[order],
            targets={name: in_order(group, order) for name, group in batch.targets.items()},
        )
        seen_turned = replace(
            negatives, mask=negatives.mask[order], log_weights=negatives.log_weights[order]
        )
        value = self._value(batch, self.targets(batch), negatives)
        for what, other, seen in (
            ("rows of views", replace(batch, views={**batch.views, **turned}), negatives),
            ("anchors", anchors_turned, seen_turned),
        ):
            again = self._value(other, self.targets(other), seen)
            promise(
                bool(torch.isclose(value, again, rtol=1e-5, atol=1e-6)),
                f"{what} in another order change it from {float(value)} to {float(again)}: join "
                "batch.views with the anchors by owner and slot",
            )

    @after("test_takes_any_mask_and_weights")
    def test_equals_its_slow_version(self) -> None:
        """In float64 it equals ``slow``, where the suite gives one."""
        if type(self).slow is LossSuite.slow:
            pytest.skip("the suite gives no slow version")
        for label, batch, targets, negatives in self.cases(torch.float64):
            ctx = self.trial().context(batch)
            fast = self._call(batch, targets, negatives, torch.float64).value.double()
            shown = self.slow(batch, targets, negatives, ctx, self.loss_options())
            slow = torch.as_tensor(shown, dtype=torch.float64)
            promise(
                bool(torch.isclose(fast, slow, rtol=self.tolerance, atol=self.tolerance)),
                f"{label}: {float(fast)}, and by the slow version {float(slow)}",
            )

    # -- what they are made of -----------------------------------------------------------------

    def loss_options(self) -> LossOptions:
        """Return its options in the suite's run."""
        return cast(LossOptions, self.trial().choice.options)

    def batch(self, sentences: int = 4, dtype: torch.dtype = torch.float32) -> Batch:
        """Return a made-up batch with all that the loss requires."""
        return self.trial().batch(self.loss_options().level, sentences=sentences, dtype=dtype)

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
        draws = draws_of(f"{count} {mask} {weights}")
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
            in_batch = core.of_loss(batch, self.loss_options(), ())
            yield f"{sentences} sentences, in-batch negatives", batch, targets, in_batch
            for mask in _MASKS:
                for weights in _WEIGHTS:
                    negatives = self.negatives(batch, 6, mask, weights)
                    label = f"{sentences} sentences, mask {mask}, weights {weights}"
                    yield label, batch, targets, negatives

    # -- calls -------------------------------------------------------------------------------

    def _ordinary(self, seed: int) -> tuple[LossOutput, list[Tensor]]:
        """Return what it makes of an ordinary batch, and the leaves that it was given."""
        batch = self.batch()
        noise = torch.randn(batch.anchors.shape, generator=draws_of(f"anchors {seed}"))
        targets, negatives = self.targets(batch), self.negatives(batch, 6, "some", "random")
        given = (batch.anchors + seed * noise, targets.vectors, negatives.vectors)
        leaves = [each.detach().clone().requires_grad_(True) for each in given]
        output = self._call(
            replace(batch, anchors=leaves[0]),
            replace(targets, vectors=leaves[1]),
            replace(negatives, vectors=leaves[2]),
            torch.float32,
        )
        return output, leaves

    def _call(
        self,
        batch: Batch,
        targets: Positives,
        negatives: Negatives,
        dtype: torch.dtype,
        part: Part | None = None,
    ) -> LossOutput:
        part = part or self.trial().part
        if isinstance(part, nn.Module) and dtype == torch.float64:
            part = deepcopy(part).double()
        output = cast(Any, type(part)).__call__(
            part, batch, targets, negatives, self.trial().context(batch)
        )
        promise(
            isinstance(output, LossOutput), f"returned {type(output).__name__}, not a LossOutput"
        )
        promise(isinstance(output.value, Tensor), f"the value is a {type(output.value).__name__}")
        shape = tuple(output.value.shape)
        promise(not shape, f"the value is not a scalar, its shape is {shape}")
        return cast(LossOutput, output)

    def _value(self, batch: Batch, targets: Positives, negatives: Negatives) -> Tensor:
        return self._call(batch, targets, negatives, batch.anchors.dtype).value.detach()

    def _check_finite(
        self, label: str, batch: Batch, targets: Positives, negatives: Negatives
    ) -> None:
        anchors = batch.anchors.detach().clone().requires_grad_(True)
        positives = targets.vectors.detach().clone().requires_grad_(True)
        candidates = negatives.vectors.detach().clone().requires_grad_(True)
        batch = replace(batch, anchors=anchors)
        output = self._call(
            batch,
            replace(targets, vectors=positives),
            replace(negatives, vectors=candidates),
            anchors.dtype,
        )
        value = output.value
        promise(bool(value.isfinite()), f"{label}: the value is {float(value.detach())}")
        for name, scalar in output.parts.items():
            promise(
                isinstance(scalar, Tensor) and scalar.numel() == 1,
                f"{label}: its part {name} is not a scalar tensor",
            )
        if not value.requires_grad:
            return
        leaves = [anchors, positives, candidates]
        gradients = torch.autograd.grad(value, leaves, allow_unused=True)
        for name, gradient in zip(("anchors", "positives", "candidates"), gradients, strict=True):
            promise(
                gradient is None or bool(gradient.isfinite().all()),
                f"{label}: the gradient of the {name} is not finite",
            )
