"""Decoders: packed rows give what the padded model gives, read in one direction or in both."""

import copy
from functools import partial
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor

from cse_core.errors import CseError
from cse_defaults.basics.poolers import LastToken
from cse_defaults.transformers.encoder import PackedEncoder
from cse_defaults.transformers.pretrained import _set_direction
from cse_defaults.transformers.shortcuts import recompute_layers
from cse_engine.step.dropout import DropoutSource
from tests.defaults.transformers.test_encoder import (
    LENGTHS,
    bert,
    close,
    close_gradients,
    encode,
    mpnet,
    padded_forward,
    randomised,
    rows,
)
from tests.fixtures.decoders import FAMILIES, SIZES
from tests.shared import fill, golden, tensor

BOTH = ("causal", "bidirectional")


def make(family: str, direction: str, **options: Any) -> tuple[Any, Any]:
    """Return a decoder with weights large enough for attention to matter, and a copy of it."""
    sizes = SIZES | {"vocab_size": 97, "pad_token_id": 0, "num_hidden_layers": 3}
    config = transformers.AutoConfig.for_model(family, **sizes | FAMILIES[family] | options)
    _set_direction(config, causal=direction == "causal")
    torch.manual_seed(0)
    model = transformers.AutoModel.from_config(config)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.25)
    return model, copy.deepcopy(model)


@pytest.mark.parametrize("direction", BOTH)
@pytest.mark.parametrize("family", FAMILIES)
def test_packed_rows_equal_the_padded_model(family: str, direction: Any) -> None:
    model, plain = make(family, direction)
    encoder = PackedEncoder(model.eval(), attention=direction)
    assert encoder.packed and encoder.causal == (direction == "causal")
    for lengths in (LENGTHS, [5, 5, 5], [24]):
        hidden = encode(encoder, lengths, layers=range(4))
        expected = padded_forward(plain.eval(), lengths)
        close(hidden.last, expected[-1])
        for layer, states in hidden.layers.items():
            close(states, expected[layer])


@pytest.mark.parametrize("direction", BOTH)
@pytest.mark.parametrize("family", ["mistral", "gemma2"])
def test_gradients_equal_the_padded_model_also_where_layers_run_again(
    family: str, direction: Any
) -> None:
    model, plain = make(family, direction)
    encoder, again = PackedEncoder(model), PackedEncoder(copy.deepcopy(plain))
    source = DropoutSource()
    source.serve(again)
    recompute_layers(again.model, source)
    weight = torch.randn(sum(LENGTHS), 32, generator=torch.Generator().manual_seed(2))
    for each in (encoder, again):
        (encode(each.train(), LENGTHS).last * weight).sum().backward()
    (padded_forward(plain.train(), LENGTHS)[-1] * weight).sum().backward()
    assert close_gradients(model, plain) >= 20
    kept, found = ([p.grad for p in each.model.parameters()] for each in (encoder, again))
    for one, two in zip(kept, found, strict=True):
        assert one is two is None or torch.equal(one, two)  # type: ignore[arg-type]


@pytest.mark.parametrize("family", FAMILIES)
def test_in_both_directions_the_first_token_sees_the_last(family: str) -> None:
    """Also in layers whose causal window is shorter than the row."""
    encoder = PackedEncoder(make(family, "bidirectional", num_hidden_layers=1)[0].eval())
    ids, positions, offsets = rows([24])
    other = torch.where(torch.arange(24) == 23, ids % 90 + 3, ids)
    assert int((other != ids).sum()) == 1
    one, two = (encoder(encoder.word_embeddings(i), positions, offsets).last for i in (ids, other))
    assert float((one[0] - two[0]).abs().max().detach()) > 1e-4


def test_permuted_positions_are_read_in_their_order() -> None:
    model, plain = make("qwen3", "causal")
    encoder = PackedEncoder(model.eval())
    padded = PackedEncoder(plain.eval(), attention="padded")
    ids, positions, offsets = rows(LENGTHS)
    order = torch.cat([p.flip(0) for p in positions.split(LENGTHS)])
    states = [each(each.word_embeddings(ids), order, offsets).last for each in (encoder, padded)]
    close(*states)
    assert not torch.allclose(states[0], encode(encoder, LENGTHS).last, atol=1e-2)


def test_all_tokens_run_through_the_last_layer() -> None:
    """A query of one token a row would see what lies behind it."""
    encoder = PackedEncoder(randomised(partial(bert, is_decoder=True))[0].eval())
    assert encoder.packed and encoder.causal
    offsets = rows(LENGTHS)[2]
    hidden = encode(encoder, LENGTHS, read=offsets[:-1])
    assert not hidden.selected_only
    close(hidden.at(offsets[:-1]), encode(encoder, LENGTHS).last[offsets[:-1]])


def test_any_decoder_is_read_as_it_is_and_no_other_is_turned() -> None:
    sizes = {"vocab_size": 97, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 24}
    torch.manual_seed(0)
    model = transformers.GPT2Model(transformers.GPT2Config(**sizes, pad_token_id=0)).eval()
    encoder = PackedEncoder(copy.deepcopy(model))
    assert encoder.causal
    close(encode(encoder, LENGTHS).last, padded_forward(model, LENGTHS)[-1])
    turned: tuple[tuple[Any, Any], ...] = (
        (bert(), "causal"),
        (mpnet(), "causal"),
        (make("llama", "causal")[0], "bidirectional"),
    )
    for other, attention in turned:
        with pytest.raises(CseError, match=f"has no {attention} attention"):
            PackedEncoder(other, attention=attention)


def packed(case: dict[str, Any], ids: str = "input_ids") -> tuple[Tensor, Tensor, Tensor]:
    kept = torch.tensor(case["attention_mask"]).bool()
    lengths = kept.sum(1).tolist()
    positions = torch.cat([torch.arange(length) for length in lengths])
    return torch.tensor(case[ids])[kept], positions, torch.tensor([0, *lengths]).cumsum(0)


@pytest.mark.parametrize("method, number", [("llm2vec", 0), ("llm2vec", 1), ("last_token", 0)])
def test_states_of_the_authors(method: str, number: int) -> None:
    given = golden("goldB")[method]
    case = given["cases"][number]
    config = transformers.AutoConfig.for_model(case["kind"], **case["config"])
    direction: Any = BOTH[method == "llm2vec"]
    _set_direction(config, causal=direction == "causal")
    model = transformers.AutoModel.from_config(config).double().eval()
    fill(model.named_parameters(), case["weight_seed"])
    encoder = PackedEncoder(model, attention=direction)
    ids, positions, offsets = packed(case)
    hidden = encoder(encoder.word_embeddings(ids), positions, offsets)
    real = torch.tensor(case["attention_mask"]).bool()
    close(hidden.last, tensor(case["hidden_states"])[real], 5e-6)
    if method == "last_token":
        read = LastToken.reads(None, type("Rows", (), {"offsets": offsets}))  # type: ignore[arg-type]
        close(hidden.at(read), tensor(case["vectors"]), 5e-6)
