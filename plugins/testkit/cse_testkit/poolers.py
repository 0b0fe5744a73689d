"""The suite of poolers: slicing, row poolers and heads."""

from __future__ import annotations

from typing import Any, cast, get_args

import pytest
import torch
from torch import Tensor, nn

from cse_core.capabilities import Role
from cse_core.options import HeadOptions
from cse_core.records import HeadSpec, PoolSpec, RowPoolerSpec, SliceSpec
from cse_core.types import Embeddings, Hidden, TokenBatch, ragged_index
from cse_testkit.part_suite import PartSuite
from cse_testkit.promises import after, promise


class PoolerSuite(PartSuite):
    """What a pooler promises: a slicing part, a row pooler or a head."""

    first = {
        "test_it_runs": (
            "test_row_makes_one_vector_a_row",
            "test_head_maps_any_number_of_vectors",
            "test_slices_keep_owners_and_count_slots",
            "test_join_makes_one_vector_a_sentence",
        )
    }

    @classmethod
    def made(cls, record: type[PoolSpec]) -> Any:
        """Return the part of the suite's run; skip where its record is of another class."""
        own = cls.found().spec
        if not isinstance(own, record):
            pytest.skip(f"its record is a {type(own).__name__}")
        return cls.trial().part

    # -- row poolers --------------------------------------------------------------------------

    @after("test_it_is_made")
    def test_row_makes_one_vector_a_row(self) -> None:
        """``pool`` returns ``[R, dimension]``, finite, and gradients reach the states."""
        pooler = self.made(RowPoolerSpec)
        for call in self.trial().watch.of("pool"):
            tokens = cast(TokenBatch, call.arguments[1])
            wanted = (tokens.rows, pooler.dimension)
            promise(tuple(call.result.shape) == wanted, f"{tuple(call.result.shape)} not {wanted}")
            promise(bool(call.result.isfinite().all()), "a vector is not finite")
            states = cast(Hidden, call.arguments[0])
            if states.last.requires_grad:
                promise(call.result.requires_grad, "cuts the gradient")

    @after("test_row_makes_one_vector_a_row")
    def test_row_reads_its_own_tokens_only(self) -> None:
        """A row pooled alone has the vector that it has among others."""
        pooler = self.made(RowPoolerSpec)
        call = self.trial().watch.of("pool")[0]
        hidden, tokens = cast(tuple[Hidden, TokenBatch], call.arguments[:2])
        for row in range(tokens.rows):
            index = torch.tensor([row])
            place = ragged_index(tokens.offsets[:-1][index], tokens.lengths[index])
            alone = Hidden(
                hidden.last[index if hidden.selected_only else place],
                {number: each[place] for number, each in hidden.layers.items()},
                selected_only=hidden.selected_only,
            )
            vector = pooler.pool(alone, tokens.take_rows(index))
            promise(
                torch.allclose(vector[0], call.result[row], rtol=1e-5, atol=1e-6),
                f"row {row} pooled alone has another vector than among {tokens.rows}",
            )

    @after("test_it_is_made")
    def test_row_prompts_are_texts(self) -> None:
        """``prompt`` returns two texts for every role, and layers are those of the encoder."""
        pooler = self.made(RowPoolerSpec)
        for role in get_args(Role):
            prompt = pooler.prompt(role)
            promise(
                isinstance(prompt, tuple)
                and len(prompt) == 2
                and all(isinstance(text, str) for text in prompt),
                f"the prompt of role {role} is {prompt!r}, not two texts",
            )
        shown = cast(RowPoolerSpec, self.found().spec).has_prompts(self.trial().choice.options)
        has = any(any(pooler.prompt(role)) for role in get_args(Role))
        promise(has == shown, f"its record says prompts = {shown}, but it has prompts: {has}")
        layers = self.trial().rig.assembly.online.encoder.layer_count
        wrong = [layer for layer in pooler.layers if not 0 <= layer <= layers]
        promise(not wrong, f"reads layers {wrong}; the encoder has 0 to {layers}")

    # -- heads --------------------------------------------------------------------------------

    @after("test_head_is_a_module_with_the_core_options")
    def test_head_maps_any_number_of_vectors(self) -> None:
        """``[N, D]`` becomes ``[N, dimension]`` for N = 1 and more, finite, with gradients."""
        head = self.made(HeadSpec)
        size = self.trial().rig.assembly.online.encoder.hidden_size
        for dtype in (torch.float32, torch.bfloat16):
            for count in (1, 2, 5):
                vectors = torch.randn(count, size, generator=torch.Generator().manual_seed(count))
                vectors.requires_grad_(True)
                with torch.autocast("cpu", dtype=dtype, enabled=dtype == torch.bfloat16):
                    mapped = head(vectors)
                wanted = (count, head.dimension)
                promise(tuple(mapped.shape) == wanted, f"{tuple(mapped.shape)}, not {wanted}")
                promise(
                    bool(mapped.isfinite().all()), f"{count} vectors: values that are not finite"
                )
                (gradient,) = torch.autograd.grad(mapped.float().square().sum(), vectors)
                promise(bool(gradient.isfinite().all()), f"{count} vectors: no finite gradient")

    @after("test_it_is_made")
    def test_head_is_a_module_with_the_core_options(self) -> None:
        """It is an ``nn.Module`` whose options have ``keep`` and ``branches``."""
        head = self.made(HeadSpec)
        promise(isinstance(head, nn.Module), "a head must be an nn.Module")
        promise(
            issubclass(self.found().spec.options, HeadOptions), "its options are not HeadOptions"
        )

    @after("test_head_maps_any_number_of_vectors")
    def test_head_equals_its_dense_module(self) -> None:
        """What it gives sentence-transformers computes the same in evaluation."""
        head = self.made(HeadSpec)
        shown = head.sentence_transformers()
        if shown is None:
            pytest.skip("it has no equal in sentence-transformers")
        config, weights = shown
        vectors = torch.randn(3, config["in_features"], generator=torch.Generator().manual_seed(0))
        module, _, name = str(config["activation_function"]).rpartition(".")
        activation = getattr(nn, name)() if module.startswith("torch.nn") else None
        promise(activation is not None, f"unknown activation {config['activation_function']}")
        bias = weights.get("linear.bias")
        dense = cast(Any, activation)(nn.functional.linear(vectors, weights["linear.weight"], bias))
        head.eval()
        try:
            same = torch.allclose(head(vectors), dense, rtol=1e-5, atol=1e-6)
        finally:
            head.train()
        promise(same, "its Dense module computes something else")

    # -- slicing ------------------------------------------------------------------------------

    @after("test_it_is_made")
    def test_slices_keep_owners_and_count_slots(self) -> None:
        """Every sentence keeps a row at least; slots count from 0; no token is another's."""
        self.made(SliceSpec)
        for call in self.trial().watch.of("slices"):
            _check_slices(cast(TokenBatch, call.arguments[0]), call.result)

    @after("test_it_is_made")
    def test_join_makes_one_vector_a_sentence(self) -> None:
        """``join`` returns one row for each owner, in the order of first appearance, slot 0."""
        slicer = self.made(SliceSpec)
        owner = torch.tensor([5, 5, 2, 9, 9, 9])
        slot = torch.tensor([0, 1, 0, 0, 1, 2])
        length = torch.tensor([4, 1, 3, 2, 2, 0])
        vectors = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
        joined = slicer.join(Embeddings(vectors, owner, slot, length))
        promise(joined.owner.tolist() == [5, 2, 9], f"owners are {joined.owner.tolist()}")
        promise(not bool(joined.slot.any()), f"slots are {joined.slot.tolist()}, not 0")
        promise(tuple(joined.vectors.shape) == (3, 3), f"shape {tuple(joined.vectors.shape)}")
        promise(bool(joined.vectors.isfinite().all()), "joins to values that are not finite")
        promise(
            torch.allclose(joined.vectors[1], vectors[2], atol=1e-6),
            "a sentence of one segment has another vector than its segment",
        )
        nothing = torch.zeros(0, dtype=torch.long)
        empty = slicer.join(Embeddings(vectors[:0], nothing, nothing, nothing))
        promise(len(empty) == 0, "joins no rows to some")


def _check_slices(content: TokenBatch, sliced: TokenBatch) -> None:
    owners = sliced.owner.tolist()
    promise(
        list(dict.fromkeys(owners)) == list(dict.fromkeys(content.owner.tolist())),
        "the owners of the slices are not those of the sentences, in order",
    )
    total = int(sliced.offsets[-1])
    promise(len(sliced.ids) == total, f"{len(sliced.ids)} ids for {total} tokens")
    for place, owner in enumerate(dict.fromkeys(owners)):
        rows = [row for row, each in enumerate(owners) if each == owner]
        slots = sliced.slot[torch.tensor(rows)].tolist()
        promise(slots == list(range(len(rows))), f"the slots of sentence {place} are {slots}")
        whole = _sources(content, torch.tensor([content.owner.tolist().index(owner)]))
        cut = _sources(sliced, torch.tensor(rows))
        foreign = set(cut.tolist()) - set(whole.tolist())
        promise(not foreign, f"sentence {place} got tokens of another (source {sorted(foreign)})")


def _sources(tokens: TokenBatch, rows: Tensor) -> Tensor:
    return tokens.source[ragged_index(tokens.offsets[:-1][rows], tokens.lengths[rows])]
