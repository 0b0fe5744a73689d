"""The suites of parts that see a batch of vectors: losses and negative stores."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any, cast, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional

from cse_core.errors import CseError
from cse_core.options import LossOptions
from cse_core.parts import Loss, NegativeStore
from cse_core.types import (
    SLOTS_PER_TEXT,
    Batch,
    Embeddings,
    LossOutput,
    Negatives,
    Positives,
    StepContext,
)
from cse_testkit.batches import seeded
from cse_testkit.gradients import STOPPED, Leaves, Samples, fault
from cse_testkit.part_suite import PartSuite
from cse_testkit.promises import NotMeant
from cse_testkit.watching import same, snapshot

_draws = partial(seeded, "loss suite")
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

    One that learns parameters takes ``part`` too, which has them as they begin.
    """

    base = (Loss,)

    def slow(
        self, batch: Batch, targets: Positives, negatives: Negatives, ctx: StepContext, options: Any
    ) -> Tensor | float | None:
        """Return the loss by a slow and obvious way; None where the suite has none."""
        return None

    def promise_its_gradient_reaches_the_vectors(self) -> None:
        """The value of some ordinary batch has a gradient for the anchors or the positives."""
        reached = False
        for seed in range(4):
            batch, targets, negatives = self.ordinary()
            noise = torch.randn(batch.anchors.shape, generator=_draws(f"anchors {seed}"))
            batch = replace(batch, anchors=batch.anchors + seed * noise)
            value, gradients = self._gradients("a batch", batch, targets, negatives)
            assert value.requires_grad, "its value carries no gradient: is it detached?"
            reached = reached or any(bool(gradient.any()) for gradient in gradients)
        assert reached, "four batches leave no gradient for anchors, positives and candidates"

    def promise_its_gradient_is_the_slope_of_its_value(self) -> None:
        """The gradients of anchors, positives and candidates are the slopes of its value.

        A loss with a stop-gradient says so: ``"loss.NAME" = ["gradient"]`` in
        ``[tool.cse.unchecked]``.
        """
        if "gradient" in self.unchecked():
            return
        assert not (wrong := fault(self._samples)), f"{wrong} {STOPPED}"

    def _samples(self, dtype: torch.dtype) -> Samples:
        """Yield its value as a function of the vectors that it reads, and these by name."""
        part = self.trial().unwatched(dtype)
        for seed in range(3):
            batch = self.batch(4, dtype)
            noise = torch.randn(batch.anchors.shape, generator=_draws(f"slope {seed}"))
            batch = replace(batch, anchors=batch.anchors + noise)
            ctx, negatives = self.context(batch), self.negatives(batch, 5, "some", "random")
            views = {name: of[batch.level] for name, of in batch.views.items() if batch.level in of}
            own = {name: rows.vectors for name, rows in views.items() if name != "anchor"}
            leaves = {self._label(name): vectors for name, vectors in own.items()}
            leaves |= {"anchors": batch.anchors, "candidates": negatives.vectors}
            for name, group in batch.targets.items():
                if name not in own or not torch.equal(own[name], group.vectors[:, 0]):
                    leaves[f"group {name}"] = group.vectors
            yield partial(self._moved, part, batch, negatives, ctx), leaves

    def _label(self, view: str) -> str:
        """Return what a message calls the vectors of a view."""
        named = {"anchor": "anchors", self.loss_options().target: "positives"}
        return named.get(view, f"view {view}")

    def _moved(
        self, part: Any, batch: Batch, negatives: Negatives, ctx: StepContext, leaves: Leaves
    ) -> Tensor:
        """Return its value with other vectors: of ``anchors``, ``candidates``, views and groups."""
        level, views, targets = batch.level, dict(batch.views), dict(batch.targets)
        for name, of in batch.views.items():
            vectors = leaves.get(self._label(name))
            if vectors is not None:
                views[name] = {**of, level: replace(of[level], vectors=vectors)}
        for name, group in batch.targets.items():
            vectors = leaves.get(f"group {name}")
            vectors = leaves[self._label(name)].unsqueeze(1) if vectors is None else vectors
            targets[name] = replace(group, vectors=vectors)
        moved = replace(batch, anchors=leaves["anchors"], views=views, targets=targets)
        candidates = replace(negatives, vectors=leaves["candidates"])
        value: Tensor = part(moved, self.targets(moved), candidates, ctx).value
        return value

    def promise_takes_any_batch(self) -> None:
        """Value and gradients are finite for one anchor, no candidates, any mask and weights.

        Log-weights of minus infinity are among them, three positives with weights, and an anchor
        without any positive.
        """
        for dtype in (torch.float32, torch.float64):
            for label, batch, targets, negatives in (*self.cases(dtype), *self._more(dtype)):
                self._gradients(f"{label}, {dtype}", batch, targets, negatives)

    def _more(self, dtype: torch.dtype) -> Iterator[tuple[str, Batch, Positives, Negatives]]:
        """Yield what a loss must take and a slow version need not: no candidates, P = 3."""
        for sentences in (1, 4):
            batch = self.batch(sentences, dtype)
            none = _no_negatives(batch)
            yield f"B = {sentences}, no candidates", batch, self.targets(batch), none
        if self.reads_texts():
            batch = self.batch(4, dtype)
            negatives = self.negatives(batch, 5, "some", "random")
            if self.loss_options().target in batch.views:
                batch = self._of_two_texts(batch)
                for weights in _weights_of(batch.anchors.new_ones(len(batch.anchors), 2)):
                    targets = replace(self.targets(batch), weights=weights)
                    yield f"two positives, weights {weights}", batch, targets, negatives
            return  # a target is a text of the batch
        rows, dimension = batch.anchors.shape
        vectors = torch.randn(rows, 3, dimension, generator=_draws("positives")).to(dtype)
        negatives = self.negatives(batch, 5, "some", "random")
        for weights in _weights_of(torch.ones(rows, 3, dtype=dtype)):
            label = f"three positives, weights {weights}"
            yield label, batch, Positives(vectors, weights), negatives

    def promise_a_masked_candidate_does_not_count(self) -> None:
        """A candidate that is masked for every anchor changes nothing, nor does one of weight 0.

        Where masks change the loss, log-weights of -60 do too: they are numbers, not a second mask.
        """
        batch, targets, few = self.ordinary()
        for label, mask, weights in (("masked", "all", "zero"), ("weightless", "none", "all -inf")):
            more = Negatives.join([few, self.negatives(batch, 3, mask, weights)])
            what = f"candidates that are {label} change it"
            self._unchanged(what, (batch, targets, few), (batch, targets, more))
        plain = self.negatives(batch, 5, "none", "zero")
        others = (
            replace(plain, mask=torch.ones_like(plain.mask)),
            replace(plain, log_weights=torch.full_like(plain.log_weights, -60.0)),
        )
        values = [self.value(batch, targets, case) for case in (plain, *others)]
        masked, light = (not bool(torch.isclose(value, values[0])) for value in values[1:])
        assert light or not masked, "log_weights of -60 leave it as it is: add them to the logits"

    def promise_a_positive_of_weight_zero_does_not_count(self) -> None:
        """Another vector in place of one of weight 0 changes nothing; an anchor has none at all."""
        if self.reads_texts():
            raise NotMeant("its targets are texts of the batch")
        batch, _, negatives = self.ordinary()
        rows, dimension = batch.anchors.shape
        vectors = torch.randn(rows, 2, dimension, generator=_draws("two positives"))
        other = vectors.clone()
        other[:, 1] = torch.randn(rows, dimension, generator=_draws("another positive"))
        other[0, 0] = other[0, 1]
        weights = torch.tensor([[1.0, 0.0]]).repeat(rows, 1)
        weights[0] = 0
        what = "the vector of a positive of weight 0 (read targets.weights) changes it"
        one, two = ((batch, Positives(v, weights), negatives) for v in (vectors, other))
        self._unchanged(what, one, two)

    def promise_every_positive_of_a_list_counts(self) -> None:
        """Other vectors of the second of two positives, looked up in views, change its value.

        Their rows are those of ``cse_core.functional.positive_texts``. The candidates are the first
        texts alone.
        """
        batch, _, negatives = self.ordinary()
        if not self.reads_texts() or self.loss_options().target not in batch.views:
            raise NotMeant("it looks up no positives in views")
        one = self._of_two_texts(batch)
        other = self._of_two_texts(batch, "again", self.several() or None)
        turned = {name: {at: replace(rows, vectors=-2 * rows.vectors) for at, rows in of.items()}
                  for name, of in one.views.items() if name != "anchor"}  # fmt: skip
        every = replace(one, views={**one.views, **turned})
        values = [self.value(case, self.targets(case), negatives) for case in (one, other, every)]
        second, some = (not torch.allclose(values[0], value, rtol=1e-5) for value in values[1:])
        if not some:
            raise NotMeant("for the made-up texts no vector of the views changes its value")
        assert second, "it counts the first of two positives alone: look up all of positive_texts"

    def _of_two_texts(
        self, batch: Batch, draws: str = "", levels: list[str] | None = None
    ) -> Batch:
        """Return a batch whose views have a second text of each row, but for the anchor.

        Args:
            batch: A batch of one text each.
            draws: What other vectors of the second texts are drawn for.
            levels: Levels at which these are others; by default all.
        """
        target = self.loss_options().target
        seconds: dict[tuple[str, str], Tensor] = {}

        def two(name: str, level: str, rows: Embeddings) -> Embeddings:
            said = draws if levels is None or level in levels else ""
            drawn = torch.randn(rows.vectors.shape, generator=_draws(f"{name} {level} {said}"))
            seconds[name, level] = drawn.to(rows.vectors.dtype)
            second = replace(rows, vectors=seconds[name, level], slot=rows.slot + SLOTS_PER_TEXT)
            return Embeddings.join([rows, second])

        views = {
            name: of if name == "anchor" else {at: two(name, at, rows) for at, rows in of.items()}
            for name, of in batch.views.items()
        }
        pair = [batch.targets[target].vectors[:, 0], seconds[target, batch.level]]
        targets = {**batch.targets, target: Positives(torch.stack(pair, dim=1))}
        return replace(batch, views=views, targets=targets)

    def promise_its_reduction_is_that_of_its_options(self) -> None:
        """``reduction = sum`` gives the mean times the anchors, all of which have a positive.

        A mean with weights keeps its value, and its sum doubles, where each anchor comes twice.
        """
        batch = self.batch()
        negatives = self.negatives(batch, 5, "none", "zero")
        made = []
        for reduction in ("mean", "sum"):
            try:
                rig = self.trial().fresh(f"{self.trial().path}.reduction={reduction}")
            except CseError as error:
                raise NotMeant(f"it refuses reduction = {reduction}: {error.line()}") from None
            made.append(rig.session.parts[self.trial().path])

        def values(batch: Batch, negatives: Negatives) -> list[float]:
            given = batch, self.targets(batch), negatives
            return [float(self._call(*given, part=part).value.detach()) for part in made]

        mean, total = values(batch, negatives)
        near = 1e-3 * max(1.0, abs(total))
        fine = abs(total - mean * len(batch.anchors)) <= near
        if not fine and abs(total - mean) > near:
            every = torch.arange(len(batch.anchors)).repeat(2)
            twice = values(*_of_anchors(batch, negatives, every))
            fine = abs(twice[0] - mean) <= near and abs(twice[1] - 2 * total) <= 2 * near
        assert fine, f"reduction = sum gives {total}, mean {mean} for {len(batch.anchors)} anchors"

    def promise_it_joins_rows_by_key(self) -> None:
        """Rows of views, or the anchors, in another order with their keys give the same loss."""
        batch, targets, negatives = self.ordinary()
        order = torch.randperm(len(batch.anchors), generator=_draws("order of anchors"))
        views = {
            name: {level: rows.take(torch.arange(len(rows)).flip(0)) for level, rows in of.items()}
            for name, of in batch.views.items()
            if name != "anchor"
        }
        for what, other, others in (
            ("rows of views", replace(batch, views={**batch.views, **views}), negatives),
            ("anchors", *_of_anchors(batch, negatives, order)),
        ):
            what = f"{what} in another order (join by owner and slot) change it"
            again = (other, self.targets(other), others)
            self._unchanged(what, (batch, targets, negatives), again)

    def promise_equals_its_slow_version(self) -> None:
        """In float64 it equals ``slow``, where the suite gives one."""
        if type(self).slow is LossSuite.slow:
            raise NotMeant("the suite gives no slow version")
        trial = self.trial()
        part: Any = trial.part
        if isinstance(part, nn.Module):
            part = trial.unwatched(torch.float64).train()
        takes_part = "part" in inspect.signature(self.slow).parameters
        also = {"part": part} if takes_part else {}
        for label, batch, targets, negatives in self.cases(torch.float64):
            given = batch, targets, negatives
            fast = self._call(*given, part=part).value.detach().double()
            shown = self.slow(*given, self.context(batch), self.loss_options(), **also)
            slow = torch.as_tensor(shown, dtype=torch.float64)
            assert bool(torch.isclose(fast, slow, rtol=1e-9, atol=1e-9)), (
                f"{label}: {float(fast)}, and by the slow version {float(slow)}"
            )

    def loss_options(self) -> LossOptions:
        """Return its options in the suite's run."""
        return cast(LossOptions, self.trial().planned.options)

    def ordinary(self) -> tuple[Batch, Positives, Negatives]:
        """Return a batch of four sentences, its targets and five made-up candidates."""
        batch = self.batch()
        return batch, self.targets(batch), self.negatives(batch, 5, "some", "random")

    def targets(self, batch: Batch) -> Positives:
        """Return the loss's own targets of a batch."""
        return batch.targets[self.loss_options().target]

    @classmethod
    def reads_texts(cls) -> bool:
        """Tell if it looks up other vectors of targets and candidates, so that these are texts."""
        kinds = get_args(type(cls.trial().planned.options).model_fields["negatives"].annotation)
        return bool(cls.several()) or ("in-batch" in kinds and "all" not in kinds)

    def negatives(self, batch: Batch, count: int, mask: str, weights: str) -> Negatives:
        """Return made-up candidates.

        Of a loss that reads other vectors of the same texts they are the texts of the batch.

        Args:
            batch: Its anchors see them.
            count: N.
            mask: ``none``, ``some`` or ``all``.
            weights: ``zero``, ``random``, ``some -inf`` or ``all -inf``.
        """
        rows, dimension = batch.anchors.shape
        dtype = batch.anchors.dtype
        draws = _draws(f"{count} {mask} {weights}")
        known: dict[str, Any] = {"name": "made up"}
        if self.reads_texts():
            view = self.loss_options().target
            texts = batch.views[view][batch.level]
            count, vectors = len(texts), texts.vectors
            known = {"name": "in-batch", "view": view, "owner": texts.owner, "slot": texts.slot}
        else:
            vectors = torch.randn(count, dimension, generator=draws, dtype=torch.float64).to(dtype)
        chance = torch.rand(rows, count, generator=draws)
        masked = {"none": chance < 0, "some": chance < 0.4, "all": chance >= 0}[mask]
        logs = torch.randn(rows, count, generator=draws, dtype=torch.float64).to(dtype)
        if weights == "zero":
            logs = torch.zeros_like(logs)
        if weights.endswith("-inf"):
            share = 0.4 if weights.startswith("some") else 2.0
            logs = logs.masked_fill(torch.rand(rows, count, generator=draws) < share, -torch.inf)
        return Negatives.of(vectors, rows, mask=masked, log_weights=logs, **known)

    def cases(self, dtype: torch.dtype) -> Iterator[tuple[str, Batch, Positives, Negatives]]:
        """Yield batches of one and four sentences with every mask and every kind of weights."""
        for sentences in (1, 4):
            batch = self.batch(sentences, dtype)
            targets = self.targets(batch)
            in_batch = self.context(batch).negatives(batch, self.loss_options())
            yield f"B = {sentences}, in-batch negatives", batch, targets, in_batch
            for mask in _MASKS:
                for weights in _WEIGHTS:
                    negatives = self.negatives(batch, 6, mask, weights)
                    label = f"B = {sentences}, mask {mask}, weights {weights}"
                    yield label, batch, targets, negatives

    def value(self, batch: Batch, targets: Positives, negatives: Negatives) -> Tensor:
        """Return its value without a graph."""
        return self._call(batch, targets, negatives).value.detach()

    def _call(
        self, batch: Batch, targets: Positives, negatives: Negatives, part: Any = None
    ) -> LossOutput:
        if part is None:
            part = self.trial().part
            if isinstance(part, nn.Module) and batch.anchors.dtype == torch.float64:
                part = deepcopy(part).double()
        output: LossOutput = part(batch, targets, negatives, self.context(batch))
        return output

    def _unchanged(self, what: str, *cases: tuple[Batch, Positives, Negatives]) -> None:
        one, other = (self.value(*case) for case in cases)
        assert bool(torch.isclose(one, other, rtol=1e-5, atol=1e-6)), (
            f"{what} from {float(one)} to {float(other)}"
        )

    def _gradients(
        self, label: str, batch: Batch, targets: Positives, negatives: Negatives
    ) -> tuple[Tensor, list[Tensor]]:
        """Return its value and the gradients that there are; all must be finite."""
        vectors = (batch.anchors, targets.vectors, negatives.vectors)
        leaves = [rows.detach().clone().requires_grad_(True) for rows in vectors]
        views = {name: dict(levels) for name, levels in batch.views.items()}
        for level in self.several():
            for levels in views.values():
                leaves.append(levels[level].vectors.detach().clone().requires_grad_(True))
                levels[level] = replace(levels[level], vectors=leaves[-1])
        value = self._call(
            replace(batch, anchors=leaves[0], views=views),
            replace(targets, vectors=leaves[1]),
            replace(negatives, vectors=leaves[2]),
        ).value
        assert bool(value.isfinite()), f"{label}: the value is {float(value.detach())}"
        if not value.requires_grad:
            return value, []
        gradients = torch.autograd.grad(value, leaves, allow_unused=True)
        names = ("anchors", "positives", "candidates", *["vectors of views"] * len(leaves[3:]))
        for name, gradient in zip(names, gradients, strict=True):
            assert gradient is None or bool(gradient.isfinite().all()), (
                f"{label}: the gradient of the {name} is not finite"
            )
        return value, [gradient for gradient in gradients if gradient is not None]


class StoreSuite(PartSuite):
    """What a negative store promises, beside what every part does."""

    base = (NegativeStore,)

    def promise_its_candidates_can_be_used(self) -> None:
        """Weights are numbers, rows are corpus rows, and what is of earlier steps has no graph."""
        for call in self.trial().calls("candidates"):
            if call.result is None:
                continue
            batch, result = cast(Batch, call.arguments[0]), cast(Negatives, call.result)
            assert bool(result.vectors.isfinite().all()), "vectors are not finite"
            _check_weights(result.log_weights)
            rows = len(batch.corpus.text_ids)
            inside = (result.row >= -1) & (result.row < rows)
            assert bool(inside.all()), f"row has numbers that are not corpus rows (of {rows})"
            if len(result) and bool((result.age > 0).all()):
                graph = result.vectors.requires_grad or result.log_weights.requires_grad
                assert not graph, "candidates of earlier steps, or their weights, hold a graph"

    def promise_weigh_only_weighs(self) -> None:
        """``weigh`` leaves vectors, rows, ages and blocks, and unmasks nothing that was masked.

        The core masks an anchor's own positives, and other rows with its text. A candidate that
        was masked for an anchor is masked, or of weight zero, after ``weigh``.
        """
        for call in self.trial().calls("weigh"):
            before = cast(Negatives, call.arguments[0])
            _check_weighed(before, call.result)
            shown = before.mask & ~call.result.mask & (call.result.log_weights > -torch.inf)
            count = int(shown.sum())
            assert not count, f"weigh makes {count} masked pairs negatives again"

    def promise_weigh_takes_any_candidates(self) -> None:
        """None at all, all masked, of weight zero, one anchor: ``weigh`` takes them."""
        part = cast(NegativeStore, self.trial().part)
        for sentences in (1, 4):
            batch = self.batch(sentences)
            several = self.context(batch).negatives(batch, LossOptions())
            for given in (
                _no_negatives(batch),
                several,
                replace(several, mask=torch.ones_like(several.mask)),
                replace(several, log_weights=torch.full_like(several.log_weights, -torch.inf)),
            ):
                weighed = part.weigh(given, batch, self.context(batch))
                _check_weighed(given, weighed)

    def promise_weigh_judges_each_anchor_by_itself(self) -> None:
        """Some anchors of a batch get what they get among all: a large batch comes in parts."""
        part, batch = cast(NegativeStore, self.trial().part), self.batch(4)
        given = self.context(batch).negatives(batch, LossOptions())
        whole = part.weigh(given, batch, self.context(batch))
        for number in range(len(batch.anchors)):
            some = slice(number, number + 1)
            one, seen = _of_anchors(batch, given, some)
            weighed = part.weigh(seen, one, self.context(one))
            alone = bool((weighed.mask == whole.mask[some]).all()) and torch.allclose(
                weighed.log_weights, whole.log_weights[some], atol=1e-5
            )
            assert alone, f"weigh gives anchor {number} other masks or weights among fewer anchors"

    def promise_its_rows_are_those_of_its_vectors(self) -> None:
        """``row`` of a candidate that is a vector of a batch is that vector's corpus row."""
        part = cast(NegativeStore, self.trial().fresh().session.parts[self.trial().path])
        early, late = self.batch(), self.batch()
        late = replace(late, rows=(late.rows + 3) % len(self.trial().corpus))
        known = [
            (rows.vectors, batch.rows[rows.owner])
            for batch in (early, late)
            for name, levels in batch.views.items()
            for rows in levels.values()
            if batch.roles[name] in ("anchor", "positive")
        ]
        vectors, rows = (torch.cat(column) for column in zip(*known, strict=True))
        part.after_step(early, self.context(early))
        result = part.candidates(late, self.context(late))
        if result is None or result.vectors.shape[1] != vectors.shape[1]:
            return
        close = functional.normalize(result.vectors) @ functional.normalize(vectors).T
        for candidate, row in enumerate(result.row.tolist()):
            same = {int(rows[place]) for place in (close[candidate] > 0.9999).nonzero()[:, 0]}
            assert not same or row in same, (
                f"row of candidate {candidate} is {row}; its vector is that of corpus row "
                f"{sorted(same)[0]}: batch.row, not batch.owner, so that its own sentence is masked"
            )

    def promise_anchors_see_candidates_of_others(self) -> None:
        """Some candidate of another row, text and document is not masked: True hides one."""
        unrelated = seen = 0
        for call in self.trial().calls("candidates"):
            batch, result = cast(Batch, call.arguments[0]), call.result
            if result is None:
                continue
            keys = batch.corpus
            related = (
                (batch.row.unsqueeze(1) == result.row.unsqueeze(0))
                | keys.same(keys.documents, batch.row, result.row)
                | keys.same(keys.text_ids, batch.row, result.row)
            )
            unrelated += int((~related).sum())
            seen += int((~related & ~result.mask).sum())
        assert seen or not unrelated, (
            f"all {unrelated} pairs of an anchor and a candidate of another row, text and document "
            "are masked; True in the mask means that it is not a negative"
        )


def _of_anchors(
    batch: Batch, negatives: Negatives, some: slice | Tensor
) -> tuple[Batch, Negatives]:
    """Return a batch with some of its anchors, in this order, and negatives as these see them."""
    targets = {
        name: Positives(group.vectors[some], None if group.weights is None else group.weights[some])
        for name, group in batch.targets.items()
    }
    rows = {name: getattr(batch, name)[some] for name in ("anchors", "owner", "slot")}
    seen = {name: getattr(negatives, name)[some] for name in ("mask", "log_weights")}
    return replace(batch, targets=targets, **rows), replace(negatives, **seen)


def _weights_of(ones: Tensor) -> tuple[Tensor | None, ...]:
    """Return weights ``[A, P]`` of positives, among them some of an anchor without any."""
    some = ones.clone()
    some[0] = 0
    some[-1, 1:] = 0
    return None, ones, some, torch.zeros_like(ones)


def _no_negatives(batch: Batch) -> Negatives:
    anchors = batch.anchors
    return Negatives.of(anchors.new_zeros(0, anchors.shape[1]), len(anchors), name="none")


def _check_weighed(before: Negatives, after: Negatives) -> None:
    for name in ("vectors", "row", "age", "blocks"):
        one, other = (snapshot(getattr(group, name)) for group in (before, after))
        same(f"weigh changes the {name} of the negatives", one, other)
    _check_weights(after.log_weights)


def _check_weights(log_weights: Tensor) -> None:
    wrong = log_weights.isnan() | (log_weights == torch.inf)
    assert not bool(wrong.any()), "a log-weight is NaN or plus infinity"
