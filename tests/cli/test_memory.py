"""The plan says that a step may not fit, and what to type; it counts what layers keep."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from cse_testkit import installed_registry
from cse_testkit.recipes import ENCODERS
from torch import Tensor
from transformers import BertConfig, BertModel

from cse_cli.training import memory
from cse_cli.training.memory import memory_warning, needed, planned_warning
from cse_core.encoders.dropout import DropoutSource
from cse_core.encoders.encoder import PackedEncoder
from cse_core.encoders.recomputation import recompute_layers
from cse_core.recipes.compose import resolve
from cse_core.recipes.composition import Composition


def composed(*sets: str, encoder: str = "bert-base") -> Composition:
    facts = ENCODERS[encoder]
    return resolve(
        installed_registry(), recipe="simcse", model=facts.model, facts=facts,
        sets=["train.precision=fp32", *sets],
    )  # fmt: skip


def kept(layers: int, width: int, rows: int, length: int, bf16: bool, again: bool) -> int:
    """Count the bytes that a BERT's forward pass keeps for the backward pass, without weights."""
    torch.manual_seed(0)
    config = BertConfig(
        hidden_size=width, num_hidden_layers=layers, intermediate_size=4 * width,
        num_attention_heads=width // 64, vocab_size=100,
    )  # fmt: skip
    encoder = PackedEncoder(BertModel(config, add_pooling_layer=False)).train()
    source = DropoutSource()
    encoder.use_dropout(source)
    if again:
        recompute_layers(encoder.model, source)
    weights = {parameter.untyped_storage().data_ptr() for parameter in encoder.parameters()}
    found: dict[int, tuple[int, Tensor]] = {}

    def keep(value: Tensor) -> Tensor:
        storage = value.untyped_storage()
        if storage.data_ptr() not in weights:
            found[storage.data_ptr()] = storage.nbytes(), value
        return value

    offsets = torch.arange(0, rows * length + 1, length)
    with (
        torch.autocast("cpu", torch.bfloat16, enabled=bf16),
        torch.autograd.graph.saved_tensors_hooks(keep, lambda value: value),
    ):
        words = encoder.word_embeddings(torch.randint(5, 90, (rows * length,)))
        encoder(words, torch.arange(length).repeat(rows), offsets)
    return sum(size for size, _ in found.values())


@pytest.mark.parametrize("bf16", [False, True])
@pytest.mark.parametrize("length", [32, 128])
def test_a_layer_keeps_what_the_estimate_says(bf16: bool, length: int) -> None:
    width, rows = 128, 1024 // length
    more = kept(4, width, rows, length, bf16, False) - kept(2, width, rows, length, bf16, False)
    tokens = 2 * rows * length
    casts = 2 * 2 * 12 * width**2 if bf16 else 0  # weights in bf16, whatever the batch
    estimate = (40 if bf16 else 68) * width + (6 if bf16 else 10) * width // 64 * length
    assert (more - casts) / tokens == pytest.approx(estimate, rel=0.03)
    again = kept(4, width, rows, length, bf16, True) - kept(2, width, rows, length, bf16, True)
    assert again / tokens == pytest.approx(4 * width, rel=0.03)


def test_what_to_type() -> None:
    run = composed("train.batch_size=512")
    most = needed(run, 1, on_gpu=False, chunk=None, again=False)
    assert most is not None and memory_warning(run, most) is None
    assert memory_warning(run, None) is None
    said = memory_warning(run, most - 1)
    assert said is not None and said.endswith(
        "GB are free: --train.chunk_size 256, or --model.gradient_checkpointing true"
    )
    assert (
        memory_warning(composed("train.batch_size=512", "train.chunk_size=256"), most - 1) is None
    )
    again = composed("train.batch_size=512", "model.gradient_checkpointing=true")
    assert memory_warning(again, most - 1) is None
    assert memory_warning(run, most * 6 // 10, processes=2, on_gpu=True) is None
    small = composed("train.batch_size=2")
    free = (needed(small, 2, on_gpu=False, chunk=None, again=False) or 0) * 6 // 10
    assert (memory_warning(small, free, processes=2) or "").endswith("free: --train.shard full")
    sharded = composed("train.batch_size=2", "train.shard=full")
    assert memory_warning(sharded, free, processes=2) is None
    nothing = memory_warning(run, 10**9)
    assert nothing is not None and nothing.endswith("a smaller model")
    unknown = replace(run, facts=replace(run.facts, layers=None))
    assert memory_warning(unknown, 1) is None


def test_more_heads_keep_more_scores() -> None:
    run = composed("train.batch_size=8", "model.max_length=512")
    assert run.facts.heads is None  # as of a model that is 768 wide: 12
    twice = replace(run, facts=replace(run.facts, heads=24))
    how: Any = {"on_gpu": False, "chunk": None, "again": False}
    more = (needed(twice, 1, **how) or 0) - (needed(run, 1, **how) or 0)
    assert more == 2 * 8 * 512 * 12 * 10 * 12 * 512  # tokens, layers, bytes of 12 heads' scores
    how["on_gpu"] = True
    assert needed(twice, 1, **how) == needed(run, 1, **how)


def test_the_plan_asks_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    def free(*_: Any) -> int:
        return 8 * 10**9

    monkeypatch.setattr(memory, "free_memory", free)
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    large = composed("train.batch_size=512", "train.device=cpu")
    assert "8.0 GB are free" in (planned_warning(large) or "")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert "4.0 GB are free" in (planned_warning(large) or "")
    assert planned_warning(composed("train.batch_size=512", "train.device=cuda")) is None
    monkeypatch.undo()
    assert (memory.free_memory() or 1) > 0
