"""The suite of poolers: slicing, row poolers and heads."""

from __future__ import annotations

from typing import Any, cast, get_args

import torch
from torch import nn

from cse_core.capabilities import Role
from cse_core.options import HeadOptions
from cse_core.records import HeadSpec, PoolSpec, RowPoolerSpec, SliceSpec
from cse_core.types import Embeddings, Hidden, TokenBatch, ragged_index
from cse_testkit.part_suite import PartSuite
from cse_testkit.promises import NotMeant


class PoolerSuite(PartSuite):
    """What a pooler promises: a slicing part, a row pooler or a head."""

    @classmethod
    def made(cls, record: type[PoolSpec]) -> Any:
        """Return the part of the suite's run; not meant where its record is of another class."""
        own = cls.found().spec
        if not isinstance(own, record):
            raise NotMeant(f"its record is a {type(own).__name__}")
        return cls.trial().part

    # -- row poolers --------------------------------------------------------------------------

    def promise_a_row_becomes_a_vector_of_its_tokens_alone(self) -> None:
        """``pool`` returns ``[R, dimension]``, for a row alone what it returns among others.

        The vectors are finite, and gradients reach the states.
        """
        pooler = self.made(RowPoolerSpec)
        calls = self.trial().calls("pool")
        for call in calls:
            states, tokens = cast(tuple[Hidden, TokenBatch], call.arguments[:2])
            shape, wanted = tuple(call.result.shape), (tokens.rows, pooler.dimension)
            assert shape == wanted, f"{shape}, not {wanted}"
            assert bool(call.result.isfinite().all()), "a vector is not finite"
            assert call.result.requires_grad or not states.last.requires_grad, "cuts the gradient"
        hidden, tokens = cast(tuple[Hidden, TokenBatch], calls[0].arguments[:2])
        for row in range(tokens.rows):
            index = torch.tensor([row])
            place = ragged_index(tokens.offsets[:-1][index], tokens.lengths[index])
            alone = Hidden(
                hidden.last[index if hidden.selected_only else place],
                {number: each[place] for number, each in hidden.layers.items()},
                selected_only=hidden.selected_only,
            )
            vector = pooler.pool(alone, tokens.take_rows(index))
            assert torch.allclose(vector[0], calls[0].result[row], rtol=1e-5, atol=1e-6), (
                f"row {row} pooled alone has another vector than among {tokens.rows}"
            )

    def promise_its_prompts_are_texts(self) -> None:
        """``prompt`` returns two texts for every role, and layers are those of the encoder."""
        pooler = self.made(RowPoolerSpec)
        prompts = {role: pooler.prompt(role) for role in get_args(Role)}
        for role, prompt in prompts.items():
            fine = isinstance(prompt, tuple) and [type(text) for text in prompt] == [str, str]
            assert fine, f"the prompt of role {role} is {prompt!r}, not two texts"
        shown = cast(RowPoolerSpec, self.found().spec).has_prompts(self.trial().planned.options)
        has = any(any(prompt) for prompt in prompts.values())
        assert has == shown, f"its record says prompts = {shown}, but it has prompts: {has}"
        layers = self.trial().rig.assembly.online.encoder.layer_count
        wrong = [layer for layer in pooler.layers if not 0 <= layer <= layers]
        assert not wrong, f"reads layers {wrong}; the encoder has 0 to {layers}"

    # -- heads --------------------------------------------------------------------------------

    def promise_a_head_maps_any_number_of_vectors(self) -> None:
        """An ``nn.Module`` with HeadOptions: ``[N, D]`` becomes ``[N, dimension]``, also for N = 1.

        Vectors and gradients are finite.
        """
        head = self.made(HeadSpec)
        assert isinstance(head, nn.Module), "a head must be an nn.Module"
        options = self.found().spec.options
        assert issubclass(options, HeadOptions), "its options are not HeadOptions"
        size = self.trial().rig.assembly.online.encoder.hidden_size
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

    # -- slicing ------------------------------------------------------------------------------

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
    """Return where the tokens of a sentence come from."""
    rows = (tokens.owner == owner).nonzero().squeeze(1)
    return set(
        tokens.source[ragged_index(tokens.offsets[:-1][rows], tokens.lengths[rows])].tolist()
    )
