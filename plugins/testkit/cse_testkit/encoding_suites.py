"""The suites of parts on the way from texts to vectors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from cse_core.parts import Adapter, Augmenter, Branch, TokenLoss, Transform
from cse_core.records import BranchSpec
from cse_core.types import TokenBatch, TokenStates
from cse_testkit.batches import tiny_tokenizer
from cse_testkit.gradients import STOPPED, Leaves, Samples, fault, projected
from cse_testkit.part_suite import PartSuite
from cse_testkit.watching import same, snapshot


class AugmenterSuite(PartSuite):
    """What an augmenter promises, at whichever point it acts."""

    base = (Augmenter,)

    def promise_it_is_called(self) -> None:
        """The run has a view that it names, and calls it."""
        assert self.trial().calls("call"), "nothing called it"

    def promise_it_keeps_rows_and_their_order(self) -> None:
        """As many rows come out as went in, each in its place, with its owner and slot."""
        for call in self.trial().calls("call"):
            x, result = call.arguments[0], call.result
            if isinstance(x, TokenBatch):
                _check_tokens(x, result)
            elif isinstance(x, Tensor):
                assert bool(result.isfinite().all()), "returned values that are not finite"
            else:
                _check_places([text.split() for text in x], [text.split() for text in result])

    def promise_it_takes_a_row_without_content(self) -> None:
        """A row that another augmenter left empty ends as a row, without an exception."""
        part = self.trial().part
        for call in self.trial().calls("call")[:1]:
            x, *rest = call.arguments
            empty = x
            if isinstance(x, TokenBatch):
                empty = x.keep_tokens((x.source < 0) | (x.row_of_token() > 0))
            elif not isinstance(x, Tensor):
                empty = ["", *x[1:]]
            try:
                result = part(empty, *rest)
            except Exception as error:
                what = f"a row without content raises {type(error).__name__}: {error}"
                raise AssertionError(what) from error
            rows = result.rows if isinstance(result, TokenBatch) else len(result)
            assert rows == (empty.rows if isinstance(empty, TokenBatch) else len(empty)), (
                "a row without content is lost"
            )

    def promise_gradients_pass_through_it(self) -> None:
        """What it returns at an embedding point leads back to the encoder's weights, unscaled."""
        part, calls = self.trial().part, self.trial().calls("call")
        calls = [call for call in calls if getattr(call.arguments[0], "requires_grad", False)]
        for call in calls:
            assert call.result.requires_grad, "cuts the gradient of what it changes"

        def samples(dtype: torch.dtype) -> Samples:
            for x, *rest in (call.arguments for call in calls[:3]):
                yield partial(_of_input, part, rest), {"embeddings": x.to(dtype)}

        if "gradient" not in self.unchecked():
            assert not (wrong := fault(samples)), f"{wrong} {STOPPED}"


def _of_input(part: Any, rest: Sequence[Any], leaves: Leaves) -> Tensor:
    return projected(part(leaves["embeddings"], *rest))


def _check_places(before: Sequence[Sequence[Any]], after: Sequence[Sequence[Any]]) -> None:
    """Check that most rows are more like what they were than like another row."""
    moved = []
    for row, words in enumerate(after):
        like = [_likeness(words, other) for other in before]
        nearest = max(range(len(like)), key=like.__getitem__)
        if like[nearest] > like[row] + 0.2:
            moved.append(f"row {row} is what row {nearest} was")
    assert 2 * len(moved) <= len(after), f"moves rows: {', '.join(moved[:2])}"


def _likeness(one: Sequence[Any], other: Sequence[Any]) -> float:
    """Return the share of common words or tokens among all of both."""
    together = set(one) | set(other)
    return len(set(one) & set(other)) / len(together) if together else 1.0


def _check_tokens(x: TokenBatch, result: TokenBatch) -> None:
    assert torch.equal(result.slot, x.slot), "changes the slots of its rows"
    rows = [(_rows(x, row), _rows(result, row)) for row in range(x.rows)]
    swapped = []
    for row, (before, after) in enumerate(rows):
        places, longest = {*after["positions"]}, max(len(before["ids"]), len(after["ids"]))
        assert len(places) == len(after["ids"]) and places <= {*range(longest)}, (
            f"the positions of row {row} are not different numbers from 0 to {longest - 1}"
        )
        assert _special(before) == _special(after), (
            f"changes the special or prompt tokens of row {row}"
        )
        foreign = set(after["source"]) - set(before["source"]) - {-1}
        assert not foreign, f"row {row} has tokens of another row (source {sorted(foreign)})"
        words = _pairs(after, "word") - _pairs(before, "word")
        new = sorted(pair for pair in words if pair[0] >= 0)
        assert not new, f"row {row}: (source, word) {new[:3]} are not those it had"
        if _pairs(after, "ids") - _pairs(before, "ids"):
            swapped.append(Counter(after["ids"]) == Counter(before["ids"]))
    assert not (swapped and all(swapped)), (
        "puts the ids of a row in another order and leaves source and word where they were: "
        "move whole tokens by take_tokens, or permute positions"
    )
    real = [pair for pair in rows if max(pair[1]["source"], default=-1) >= 0]  # of the text
    _check_places([before["ids"] for before, _ in real], [after["ids"] for _, after in real])


def _rows(tokens: TokenBatch, row: int) -> dict[str, list[Any]]:
    """Return the fields of the tokens of a row."""
    place = slice(int(tokens.offsets[row]), int(tokens.offsets[row + 1]))
    names = ("ids", "positions", "source", "word", "special")
    return {name: getattr(tokens, name)[place].tolist() for name in names}


def _special(row: dict[str, list[Any]]) -> list[int]:
    return [token for token, special in zip(row["ids"], row["special"], strict=True) if special]


def _pairs(row: dict[str, list[Any]], name: str) -> set[tuple[int, int]]:
    return set(zip(row["source"], row[name], strict=True))


class TokenLossSuite(PartSuite):
    """What a loss on token states promises, beside what every part does."""

    base = (TokenLoss,)

    def promise_its_gradient_reaches_the_encoder(self) -> None:
        """It is called for the views of its record; the core sees that its total has a gradient."""
        assert self.trial().calls("sums"), "nothing called it"

    def promise_its_gradient_is_the_slope_of_its_value(self) -> None:
        """The gradient of the states and vectors is the slope of the total."""
        if "gradient" in self.unchecked():
            return

        def total(part: Any, views: Any, ctx: Any, leaves: Leaves) -> Tensor:
            changed = {
                name: replace(
                    view, states=leaves[f"states of {name}"], vectors=leaves[f"vectors of {name}"]
                )
                for name, view in views.items()
            }
            value: Tensor = part.sums(changed, ctx).total
            return value

        def samples(dtype: torch.dtype) -> Samples:
            part = self.trial().unwatched(dtype)
            for views, ctx in (call.arguments for call in self.trial().calls("sums")[:3]):
                leaves = {f"states of {n}": view.states.to(dtype) for n, view in views.items()}
                leaves |= {f"vectors of {n}": view.vectors.to(dtype) for n, view in views.items()}
                yield partial(total, part, views, ctx), leaves

        assert not (wrong := fault(samples)), f"{wrong} {STOPPED}"

    def promise_no_rows_add_nothing(self) -> None:
        """Of no rows total and count are zero, and the parts are those of other rows."""
        call = self.trial().calls("sums")[0]
        views, ctx = call.arguments
        none = {name: _no_rows(view) for name, view in views.items()}
        content = tiny_tokenizer().content([])
        ctx = ctx.replace(texts=lambda _: [], values=lambda _: [], tokens=lambda _: content)
        sums = self.trial().part.sums(none, ctx)
        assert not float(sums.total.detach()), f"the total of no rows is {float(sums.total)}"
        assert not float(sums.count), f"the count of no rows is {float(sums.count)}"
        assert sums.parts.keys() == call.result.parts.keys(), "has other parts for no rows"


def _no_rows(view: TokenStates) -> TokenStates:
    return TokenStates(
        tokens=view.tokens.take_rows(torch.zeros(0, dtype=torch.long)),
        states=view.states[:0],
        vectors=view.vectors[:0],
        labelled=view.labelled[:0],
        place=view.place[:0],
    )


class TransformSuite(PartSuite):
    """What a transform promises, beside what every part does."""

    base = (Transform,)

    def promise_it_keeps_rows_and_gradients(self) -> None:
        """Rows keep their keys, and what it changes leads back to the vectors it was given."""
        calls = self.trial().calls("call")
        assert calls, "nothing called it"
        for call in calls:
            views = call.arguments[0]
            for name, changed in call.result.items():
                given = views[name]
                assert torch.equal(changed.owner, given.owner), f"changes the owners of {name}"
                assert torch.equal(changed.slot, given.slot), f"changes the slots of {name}"
                learns = not given.vectors.requires_grad or changed.vectors.requires_grad
                assert learns, f"cuts the gradient of {name}"

    def promise_its_gradient_is_the_slope_of_its_vectors(self) -> None:
        """The gradient of the vectors that it is given is the slope of what it makes of them."""

        def of_views(part: Any, views: Any, ctx: Any, leaves: Leaves) -> Tensor:
            given = {n: replace(view, vectors=leaves[f"view {n}"]) for n, view in views.items()}
            return projected({n: view.vectors for n, view in part(given, ctx).items()})

        def samples(dtype: torch.dtype) -> Samples:
            part = self.trial().unwatched(dtype)
            for views, ctx in (call.arguments for call in self.trial().calls("call")[:3]):
                leaves = {f"view {name}": view.vectors.to(dtype) for name, view in views.items()}
                yield partial(of_views, part, views, ctx), leaves

        if "gradient" not in self.unchecked():
            assert not (wrong := fault(samples)), f"{wrong} {STOPPED}"

    def promise_a_row_keeps_its_key(self) -> None:
        """Rows in another order with their keys come out in this order, with the same vectors."""
        part, (views, ctx) = self.trial().part, self.trial().calls("call")[0].arguments
        order = {n: torch.arange(len(view)).roll(1 + place) for place, (n, view) in
                 enumerate(views.items())}  # fmt: skip
        once = part(views, ctx)
        again = part({name: view.take(order[name]) for name, view in views.items()}, ctx)
        for name, view in once.items():
            close = torch.allclose(view.vectors[order[name]], again[name].vectors, atol=1e-5)
            assert close, (
                f"rows of {name} in another order get other vectors: return each row's vector in "
                "its place, and join views by owner and slot"
            )


class BranchSuite(PartSuite):
    """What a branch promises, beside what every part does."""

    base = (Branch,)

    def promise_untrained_branches_get_no_gradient(self) -> None:
        """A branch that is not trained has weights of its own that ask for no gradient."""
        trial, branch = self.trial(), cast(Branch, self.trial().part)
        if cast(BranchSpec, trial.planned.spec).trainable:
            return
        online = {id(weight) for weight in trial.rig.session.encoder().parameters()}
        for module in (branch.encoder, *branch.heads.values()):
            asked = [
                name
                for name, weight in module.named_parameters()
                if id(weight) not in online and (weight.requires_grad or weight.grad is not None)
            ]
            assert not asked, f"its own weights ask for gradients: {', '.join(asked[:3])}"


class AdapterSuite(PartSuite):
    """What an adapter promises, beside what every part does."""

    base = (Adapter,)

    _may_change = ("requires_grad",)

    def promise_what_it_trains_moves_and_nothing_else(self) -> None:
        """After two steps every weight that requires a gradient moved, and no other did."""
        rig = self.trial().fresh("train.lr=1e-2")
        weights = dict(rig.session.encoder().named_parameters())
        before = {name: weight.detach().clone() for name, weight in weights.items()}
        trained = {name for name, weight in weights.items() if weight.requires_grad}
        if cast(Adapter, rig.session.parts[self.trial().path]).heads_only:
            assert not trained, "heads_only is set, and weights of the encoder train"
        else:
            assert trained, "no weight of the encoder trains"
        rig.step(2)
        moved = {name for name, weight in weights.items() if not torch.equal(weight, before[name])}
        still, others = sorted(trained - moved), sorted(moved - trained)
        assert not still, f"require a gradient and do not move: {', '.join(still[:3])}"
        assert not others, f"require no gradient and move: {', '.join(others[:3])}"

    def promise_a_merged_model_gives_the_same_vectors(self) -> None:
        """``merged`` has the weights of a plain encoder, and changes nothing of the adapted one."""
        rig = self.trial().fresh("train.lr=1e-2")
        rig.step(2)
        adapter = cast(Adapter, rig.session.parts[self.trial().path])
        encoder = rig.session.encoder()
        texts = list(self.trial().corpus.column("text"))[:6]
        before = snapshot(dict(encoder.model.state_dict()))
        merged = adapter.merged(encoder.model)
        after = snapshot(dict(encoder.model.state_dict()))
        same("merged changes the adapted encoder", before, after)
        names = set(merged.state_dict())
        plain = {name for name in type(merged)(merged.config).state_dict() if "pooler" not in name}
        assert names == plain, f"merged has other weights: {sorted(names ^ plain)[:3]}"
        wanted = rig.session.encode(texts)
        adapted, encoder.model = encoder.model, merged
        vectors = rig.session.encode(texts)
        encoder.model = adapted
        assert np.allclose(vectors, wanted, rtol=1e-4, atol=1e-5), (
            f"merged, vectors differ by up to {np.abs(vectors - wanted).max():.2g}"
        )
