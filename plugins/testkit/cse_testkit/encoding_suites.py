"""The suites of parts on the way from texts to vectors."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast, get_args

import numpy as np
import torch
from torch import Tensor, nn

import cse
from cse_core.capabilities import Role
from cse_core.parts import (
    Adapter,
    Augmenter,
    Branch,
    Head,
    MultiVectorPooler,
    RowPooler,
    SlicePooler,
    TokenLoss,
    Transform,
)
from cse_core.records import (
    BranchSpec,
    HeadSpec,
    MultiVectorSpec,
    PoolSpec,
    RowPoolerSpec,
    SliceSpec,
)
from cse_core.types import Embeddings, Hidden, TokenBatch, TokenStates, ragged_index
from cse_testkit.batches import tiny_tokenizer
from cse_testkit.gradients import STOPPED, Leaves, Samples, fault, projected
from cse_testkit.part_suite import PartSuite
from cse_testkit.promises import NotMeant
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


class PoolerSuite(PartSuite):
    """What a pooler promises: of rows, of several vectors, a slicing part or a head."""

    base = (SlicePooler, RowPooler, MultiVectorPooler, Head)

    @classmethod
    def made(cls, record: type[PoolSpec]) -> Any:
        """Return the part of the suite's run; not meant where its record is of another class."""
        spec = cls.found().spec
        if not isinstance(spec, record):
            raise NotMeant(f"its record is a {type(spec).__name__}")
        return cls.trial().part

    def promise_a_saved_model_encodes_as_the_run_does(self) -> None:
        """Saved after two steps and loaded, with the head kept, a model gives the same vectors."""
        trial = self.trial()
        kept = (f"{trial.path}.keep=always",) if isinstance(trial.planned.spec, HeadSpec) else ()
        rig, texts = trial.fresh(*kept), list(trial.corpus.column("text"))[:6]
        rig.step(2)
        with tempfile.TemporaryDirectory(prefix="cse-model-") as folder:
            rig.session.save(f"{folder}/model")
            vectors = cse.load(f"{folder}/model", device="cpu", plugins=trial.plugins).encode(texts)
        far = np.abs(vectors - rig.session.encode(texts)).max()
        assert far < 1e-4, (
            f"vectors differ by up to {far:.2g}: make it an nn.Module and what it learns a buffer"
        )

    def promise_its_gradient_is_the_slope_of_its_vectors(self) -> None:
        """The gradient of the states, or of the vectors, is the slope of what it makes of them."""
        if "gradient" in self.unchecked():
            return
        trial = self.trial()

        def of_states(part: Any, hidden: Hidden, tokens: TokenBatch, leaves: Leaves) -> Tensor:
            layers = {layer: leaves[f"layer {layer}"] for layer in hidden.layers}
            states = replace(hidden, last=leaves["states"], layers=layers)
            return projected(part.pool(states, tokens))

        def of_vectors(part: Any, leaves: Leaves) -> Tensor:
            return projected(part(leaves["vectors"]))

        def of_rows(part: Any, rows: Embeddings, leaves: Leaves) -> Tensor:
            return projected(part.join(replace(rows, vectors=leaves["vectors"])).vectors)

        def samples(dtype: torch.dtype) -> Samples:
            part = trial.unwatched(dtype)
            for hidden, tokens in (call.arguments for call in trial.calls("pool")[:3]):
                leaves = {f"layer {n}": states.to(dtype) for n, states in hidden.layers.items()}
                leaves["states"] = hidden.last.to(dtype)
                yield partial(of_states, part, hidden, tokens), leaves
            for (vectors,) in (call.arguments for call in trial.calls("forward")[:3]):
                yield partial(of_vectors, part), {"vectors": vectors.to(dtype)}
            for (rows,) in (call.arguments for call in trial.calls("join")[:3]):
                yield partial(of_rows, part, rows), {"vectors": rows.vectors.to(dtype)}

        assert not (wrong := fault(samples)), f"{wrong} {STOPPED}"

    def promise_a_row_without_content_has_a_vector(self) -> None:
        """Of a row of special tokens alone the vector is finite, and the others stay."""
        self.made(RowPoolerSpec)
        call = self.trial().calls("pool")[0]
        hidden, tokens = call.arguments
        if hidden.selected_only:
            return
        keep = (tokens.source < 0) | (tokens.row_of_token() > 0)
        layers = {layer: states[keep] for layer, states in hidden.layers.items()}
        rest = replace(hidden, last=hidden.last[keep], layers=layers)
        pooled = self.trial().part.pool(rest, tokens.keep_tokens(keep))
        assert bool(pooled.isfinite().all()), (
            "the vector of a row without content is not finite: does it divide by 0?"
        )

    def promise_its_prompts_are_texts(self) -> None:
        """``prompt`` returns two texts for every role, and layers are those of the encoder."""
        pooler = self.made(RowPoolerSpec)
        prompts = {role: pooler.prompt(role) for role in get_args(Role)}
        for role, prompt in prompts.items():
            fine = isinstance(prompt, tuple) and [type(text) for text in prompt] == [str, str]
            assert fine, f"the prompt of role {role} is {prompt!r}, not two texts"
        shown = self.found().spec.declared("prompts", self.trial().planned.options)
        has = any(any(prompt) for prompt in prompts.values())
        assert has == shown, f"its record says prompts = {shown}, but it has prompts: {has}"
        layers = self.trial().rig.session.encoder().layer_count
        wrong = [layer for layer in pooler.layers if not 0 <= layer <= layers]
        assert not wrong, f"reads layers {wrong}; the encoder has 0 to {layers}"

    def promise_a_head_maps_any_number_of_vectors(self) -> None:
        """An ``nn.Module``: ``[N, D]`` becomes ``[N, dimension]``, also for N = 1.

        Vectors and gradients are finite.
        """
        head = self.made(HeadSpec)
        assert isinstance(head, nn.Module), "a head must be an nn.Module"
        size = self.trial().rig.session.encoder().hidden_size
        for dtype in (torch.float32, torch.bfloat16):
            for count in (1, 2, 5):
                vectors = torch.randn(count, size, generator=torch.Generator().manual_seed(count))
                vectors.requires_grad_(True)
                with torch.autocast("cpu", dtype=dtype, enabled=dtype == torch.bfloat16):
                    mapped = head(vectors)
                shape, wanted = tuple(mapped.shape), (count, head.dimension)
                assert shape == wanted, f"{shape}, not {wanted}"
                (gradient,) = torch.autograd.grad(mapped.float().square().sum(), vectors)
                for what, values in (("value", mapped), ("gradient", gradient)):
                    assert bool(values.isfinite().all()), f"{count} vectors: no finite {what}"

    def promise_a_head_equals_its_dense_module(self) -> None:
        """What it gives sentence-transformers computes the same in evaluation."""
        head = self.made(HeadSpec)
        shown = head.sentence_transformers()
        if shown is None:
            raise NotMeant("it has no equal in sentence-transformers")
        config, weights = shown
        vectors = torch.randn(3, config["in_features"], generator=torch.Generator().manual_seed(0))
        module, _, name = str(config["activation_function"]).rpartition(".")
        activation = getattr(nn, name)() if module.startswith("torch.nn") else None
        assert activation is not None, f"unknown activation {config['activation_function']}"
        bias = weights.get("linear.bias")
        dense = activation(nn.functional.linear(vectors, weights["linear.weight"], bias))
        head.eval()
        mapped = head(vectors)
        head.train()
        same = torch.allclose(mapped, dense, rtol=1e-5, atol=1e-6)
        assert same, "its Dense module computes something else"

    def promise_units_are_of_their_row_alone(self) -> None:
        """A row has the same units without the others, and every row has some."""
        pooler = self.made(MultiVectorSpec)
        calls = self.trial().calls("units")
        assert calls, "nothing called it"
        for call in calls:
            tokens, view = call.arguments
            for row in range(tokens.rows):
                start = int(tokens.offsets[row])
                one = pooler.units(tokens.take_rows(torch.tensor([row])), view)
                here = torch.repeat_interleave(call.result.row, call.result.lengths) == row
                index = call.result.index[here] - start
                same = torch.equal(one.index, index)
                same = same and torch.equal(
                    one.lengths, call.result.lengths[call.result.row == row]
                )
                assert same, f"row {row} of {view} has other units without the other rows"
                assert len(one) or not tokens.lengths[row], f"row {row} of {view} has no vector"

    def promise_slices_keep_owners_and_count_slots(self) -> None:
        """Every sentence keeps a row at least; slots count from 0; no token is another's."""
        self.made(SliceSpec)
        for call in self.trial().calls("slices"):
            content, sliced = cast(TokenBatch, call.arguments[0]), cast(TokenBatch, call.result)
            owners = list(dict.fromkeys(content.owner.tolist()))
            assert list(dict.fromkeys(sliced.owner.tolist())) == owners, (
                "the owners of the slices are not those of the sentences, in order"
            )
            total = int(sliced.offsets[-1])
            assert len(sliced.ids) == total, f"{len(sliced.ids)} ids for {total} tokens"
            for place, owner in enumerate(owners):
                slots = sliced.slot[sliced.owner == owner].tolist()
                fine = slots == list(range(len(slots)))
                assert fine, f"the slots of sentence {place} are {slots}"
                foreign = _sources(sliced, owner) - _sources(content, owner)
                assert not foreign, (
                    f"sentence {place} got tokens of another (source {sorted(foreign)})"
                )

    def promise_join_makes_one_vector_a_sentence(self) -> None:
        """``join`` returns one row for each owner, in the order of first appearance, slot 0."""
        slicer = self.made(SliceSpec)
        owner = torch.tensor([5, 5, 2, 9, 9, 9])
        slot = torch.tensor([0, 1, 0, 0, 1, 2])
        length = torch.tensor([4, 1, 3, 2, 2, 0])
        vectors = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
        joined = slicer.join(Embeddings(vectors, owner, slot, length))
        assert joined.owner.tolist() == [5, 2, 9], f"owners are {joined.owner.tolist()}"
        assert not bool(joined.slot.any()), f"slots are {joined.slot.tolist()}, not 0"
        assert tuple(joined.vectors.shape) == (3, 3), f"shape {tuple(joined.vectors.shape)}"
        assert bool(joined.vectors.isfinite().all()), "joins to values that are not finite"
        assert torch.allclose(joined.vectors[1], vectors[2], atol=1e-6), (
            "a sentence of one segment has another vector than its segment"
        )
        nothing = torch.zeros(0, dtype=torch.long)
        empty = slicer.join(Embeddings(vectors[:0], nothing, nothing, nothing))
        assert len(empty) == 0, "joins no rows to some"


def _sources(tokens: TokenBatch, owner: int) -> set[int]:
    """Return the source places of a sentence's tokens."""
    rows = (tokens.owner == owner).nonzero().squeeze(1)
    return set(
        tokens.source[ragged_index(tokens.offsets[:-1][rows], tokens.lengths[rows])].tolist()
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
