"""Modules that somebody put around those of an encoder: shortcuts must not go past them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from cse_core.encoders.encoder import PackedEncoder
from tests.core.encoders.test_encoder import (
    LENGTHS,
    albert,
    bert,
    close,
    distilbert,
    electra,
    encode,
    randomised,
    roberta,
    rows,
)


class Wrapped(nn.Module):
    """What a low-rank adapter does to a layer: something is added to what it returns."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, *given: Any, **named: Any) -> Any:
        out = self.inner(*given, **named)
        return out + 0.5 * out.sin() if isinstance(out, Tensor) else (out[0] + 1.0, *out[1:])


def wrap(encoder: PackedEncoder, *names: str) -> int:
    """Wrap modules by the ends of their names; return how many."""
    found = [name for name, _ in encoder.model.named_modules() if name.endswith(names)]
    for name in found:
        above, _, last = name.rpartition(".")
        holder = encoder.model.get_submodule(above)
        setattr(holder, last, Wrapped(getattr(holder, last)))
    return len(found)


@pytest.mark.parametrize("make", [bert, roberta, electra, distilbert, albert])
def test_keys_and_values_of_a_copy_are_those_of_its_wrapped_modules(make):
    online = PackedEncoder(randomised(make)[0].eval())
    plain = PackedEncoder(randomised(make)[0].eval(), attention="padded")
    read = rows(LENGTHS)[2][:-1]
    before = encode(online, LENGTHS, read=read)
    copied = online.copy()
    for encoder in (copied, plain):
        assert wrap(encoder, ".key", ".value", ".k_lin", ".v_lin") >= 2
    alone = encode(copied, LENGTHS, read=read)
    assert alone.selected_only
    close(alone.at(read), encode(plain, LENGTHS).last[read])
    assert float((alone.at(read) - before.at(read)).detach().abs().max()) > 1e-2
    assert torch.equal(encode(online, LENGTHS, read=read).at(read), before.at(read))


def test_a_last_layer_that_has_other_modules_now_runs_for_all_tokens():
    encoder = PackedEncoder(randomised(bert)[0].eval())
    plain = PackedEncoder(randomised(bert)[0].eval(), attention="padded")
    read = rows(LENGTHS)[2][:-1]
    for each in (encoder, plain):
        layers = each.model.encoder.layer
        layers[-1].attention = Wrapped(layers[-1].attention)
    found = encode(encoder, LENGTHS, read=read)
    assert not found.selected_only
    close(found.last, encode(plain, LENGTHS).last)


def test_a_word_table_that_was_wrapped_is_asked():
    encoder = PackedEncoder(randomised(bert)[0].eval())
    ids = torch.arange(5, 15)
    before = encoder.word_embeddings(ids)
    copied, sharing = encoder.copy(), encoder.copy(share_embeddings=True)
    assert sharing.model.get_input_embeddings() is encoder.model.get_input_embeddings()
    wrap(copied, "word_embeddings")
    assert torch.equal(copied.word_embeddings(ids), before + 0.5 * before.sin())
    assert torch.equal(encoder.word_embeddings(ids), before)
    again = copied.copy(share_embeddings=True)
    assert again.model.get_input_embeddings() is copied.model.get_input_embeddings()


def test_a_copy_shares_what_does_not_train():
    encoder = PackedEncoder(randomised(bert)[0].eval())
    assert not shared(encoder, encoder.copy())
    encoder.model.requires_grad_(False)
    trained = [each for name, each in encoder.named_parameters() if name.endswith("bias")]
    for each in trained:
        each.requires_grad_(True)
    copied = encoder.copy()
    assert shared(encoder, copied) == {id(e) for e in encoder.parameters()} - {
        id(e) for e in trained
    }
    assert torch.equal(encode(copied, LENGTHS).last, encode(encoder, LENGTHS).last)


def shared(one: nn.Module, other: nn.Module) -> set[int]:
    return {id(each) for each in one.parameters()} & {id(each) for each in other.parameters()}
