"""What is computed in a cheaper way, and that modules around modules are not gone past."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from cse_defaults.transformers.encoder import PackedEncoder
from cse_defaults.transformers.shortcuts import WordTable
from tests.defaults.transformers.test_encoder import (
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


def test_copies_share_what_does_not_train_and_ask_a_wrapped_table():
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


def tables(**options):
    torch.manual_seed(0)
    table = nn.Embedding(11, 4, **options)
    return table, copy.deepcopy(table)


@pytest.mark.parametrize("options", [{}, {"padding_idx": 3}, {"sparse": True}, {"max_norm": 1.0}])
def test_gradients_equal_torch(options):
    ours, theirs = tables(**options)
    look_up = WordTable(ours)
    weight = torch.randn(6, 4)
    kept = None
    for ids in ([1, 3, 1, 10, 3, 0], [2, 2, 2, 3, 9, 9]):
        ids = torch.tensor(ids)
        for _ in range(2):  # gradients add up until they are forgotten
            (look_up(ids) * weight).sum().backward()
            (theirs(ids) * weight).sum().backward()
        expected = theirs.weight.grad
        torch.testing.assert_close(ours.weight.grad, expected)
        if not expected.is_sparse and "max_norm" not in options:
            assert kept in (None, ours.weight.grad.data_ptr())
            kept = ours.weight.grad.data_ptr()
        ours.weight.grad = theirs.weight.grad = None


def test_gradients_of_others_are_left_and_added_to():
    ours, theirs = tables()
    ids = torch.tensor([4, 4, 7])
    (WordTable(ours)(ids).sum() + (ours.weight**2).sum()).backward()
    (theirs(ids).sum() + (theirs.weight**2).sum()).backward()
    torch.testing.assert_close(ours.weight.grad, theirs.weight.grad)
    table, _ = tables()
    look_up = WordTable(table)
    words = look_up(torch.tensor([1, 2]))
    (gradient,) = torch.autograd.grad((words**2).sum(), [words])
    torch.testing.assert_close(gradient, 2 * words.detach())
    assert table.weight.grad is None
    other = copy.deepcopy(look_up)
    assert other.table is not table
    other(torch.tensor([1])).sum().backward()
    assert table.weight.grad is None
    table.weight.requires_grad_(False)
    assert not look_up(torch.tensor([1])).requires_grad
