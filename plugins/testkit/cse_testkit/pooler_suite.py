"""The suite of poolers and heads."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from functools import partial
from typing import Any, cast, get_args

import numpy as np
import torch
from torch import Tensor, nn

import cse
from cse_core.capabilities import Role
from cse_core.parts import Head, MultiVectorPooler, RowPooler, SlicePooler
from cse_core.records import HeadSpec, MultiVectorSpec, PoolSpec, RowPoolerSpec, SliceSpec
from cse_core.types import Embeddings, Hidden, TokenBatch, ragged_index
from cse_testkit.gradients import STOPPED, Leaves, Samples, fault, projected
from cse_testkit.part_suite import PartSuite
from cse_testkit.promises import NotMeant


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
