"""Through every family of encoders: packed or padded rows of different lengths."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
from cse_testkit import (
    installed_registry,
    make_context,
    make_part,
    run_steps,
    shared_encoder,
    tiny_corpus,
)
from cse_testkit.tiny import Family
from torch import Tensor
from transformers import AutoModel, ModernBertConfig, ModernBertModel

from cse_core.encoders.encoder import PackedEncoder
from cse_core.encoders.pretrained import load_tokenizer
from cse_core.tokenization.tokenizer import TextTokenizer
from cse_core.types import TokenBatch, View

FAMILIES = get_args(Family)
EMBEDDINGS = ("token-cutoff", "feature-cutoff", "embedding-dropout")
VIEW = View("positive", "positive", "online")
TEXTS = [
    "Anna paints the boat.",
    "No.",
    "The old harbour was quiet, and nobody saw the red boat leave before the rain came.",
    "Birds sing in the morning.",
]


def wrapped(folder: Path) -> TokenBatch:
    tokenizer = TextTokenizer(load_tokenizer(folder))
    return tokenizer.wrap(tokenizer.content(TEXTS), longest=64)


def states(encoder: PackedEncoder, tokens: TokenBatch, on_input: Any = None) -> Tensor:
    words = encoder.word_embeddings(tokens.ids)
    return encoder(words, tokens.positions, tokens.offsets, on_input=on_input).last


def rows_of(tokens: TokenBatch) -> list[slice]:
    bounds = tokens.offsets.tolist()
    return [slice(start, stop) for start, stop in zip(bounds, bounds[1:], strict=False)]


@pytest.mark.parametrize("family", FAMILIES)
def test_shuffled_rows_equal_the_family_s_own_model_with_these_positions(family: Family) -> None:
    """Each row alone, unpadded, through the plain Hugging Face model."""
    folder = shared_encoder(family=family)
    encoder = PackedEncoder.load(folder, dropout=0.0, seed=0).eval()
    plain = AutoModel.from_pretrained(folder).eval()
    tokens = wrapped(folder)
    shuffled = make_part("aug", "token-shuffle")(tokens, tokens, VIEW, make_context())
    with torch.no_grad():
        found = states(encoder, shuffled)
        for row in rows_of(tokens):
            ids, positions = shuffled.ids[row], shuffled.positions[row]
            assert not torch.equal(positions, tokens.positions[row])
            if family == "mpnet":
                # It takes no position ids that count: tokens stand where their positions say.
                order = torch.argsort(positions)
                wanted = plain(input_ids=ids[order].unsqueeze(0))[0][0][positions]
            else:
                shifted = (positions + encoder.first_position).unsqueeze(0)
                wanted = plain(input_ids=ids.unsqueeze(0), position_ids=shifted)[0][0]
            assert torch.allclose(found[row], wanted, rtol=1e-3, atol=1e-4)


def test_shuffled_rows_of_rotary_positions_and_sliding_windows() -> None:
    """ModernBERT knows positions by attention alone: as if its tokens stood in their order."""
    special: Any = dict.fromkeys(("cls_token_id", "bos_token_id"), 1)
    special |= dict.fromkeys(("sep_token_id", "eos_token_id"), 2)
    config = ModernBertConfig(
        vocab_size=97, hidden_size=32, num_hidden_layers=3, num_attention_heads=4,
        intermediate_size=48, max_position_embeddings=64, local_attention=8, pad_token_id=0,
        **special,
    )  # fmt: skip
    torch.manual_seed(0)
    plain = ModernBertModel(config).eval()
    encoder = PackedEncoder(copy.deepcopy(plain)).eval()
    tokens = wrapped(shared_encoder())
    tokens = replace(tokens, ids=tokens.ids % 97)
    shuffled = make_part("aug", "token-shuffle")(tokens, tokens, VIEW, make_context())
    with torch.no_grad():
        found = states(encoder, shuffled)
        for row in rows_of(tokens):
            ids, positions = shuffled.ids[row], shuffled.positions[row]
            wanted = plain(input_ids=ids[torch.argsort(positions)].unsqueeze(0))[0][0][positions]
            assert torch.allclose(found[row], wanted, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", EMBEDDINGS)
def test_rows_do_not_see_each_other(family: Family, name: str) -> None:
    """A row whose embeddings changed leaves the others as they were, padded or packed."""
    folder = shared_encoder(family=family)
    encoder = PackedEncoder.load(folder, dropout=0.0, seed=0).eval()
    tokens = wrapped(folder)
    part = make_part("aug", name, rate=0.5)
    changed = rows_of(tokens)[2]

    def on_input(entered: Tensor) -> Tensor:
        augmented = part(entered, tokens, VIEW, make_context())
        only = entered.clone()
        only[changed] = augmented[changed]
        return only

    with torch.no_grad():
        before, after = states(encoder, tokens), states(encoder, tokens, on_input)
    for row in rows_of(tokens):
        same = torch.allclose(before[row], after[row], rtol=1e-4, atol=1e-5)
        assert same == (row != changed)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_augmenter_at_once_trains(family: Family) -> None:
    kinds = ["token-shuffle", *(f"+{name}" for name in EMBEDDINGS)]
    views = [f"aug.{name.lstrip('+')}.views=[anchor,positive]" for name in kinds]
    run = run_steps({"aug": kinds}, views, encoder=shared_encoder(family=family), steps=2)
    assert not run.unchanged
    assert all(torch.isfinite(torch.tensor(run.losses)))


def has(kind: Any, name: str) -> bool:
    return installed_registry().has(kind, name)


@pytest.mark.parametrize("name", ["token-shuffle", *EMBEDDINGS])
@pytest.mark.parametrize(
    ("kind", "other"), [("loss", "twins"), ("pool", "segments"), ("aug", "word-repetition")]
)
def test_beside_other_parts(name: str, kind: Any, other: str) -> None:
    """Under another loss, with slices, after other token augmenters, where these are installed."""
    if not has(kind, other):
        pytest.skip(f"no {kind} {other} is installed")
    kinds: dict[Any, list[str]] = {"aug": [name]}
    kinds[kind] = [*kinds.get(kind, []), other if kind == "loss" else f"+{other}"]
    corpus = tiny_corpus(columns=("fraternal",))
    sets = ["model.max_length=64"] if kind == "pool" else []
    run = run_steps(kinds, sets, corpus=corpus, steps=2)
    assert not run.unchanged
    assert all(torch.isfinite(torch.tensor(run.losses)))
