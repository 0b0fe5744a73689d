"""The gradient of the word embeddings is torch's own, in memory that is kept."""

import copy

import pytest
import torch
from torch import nn

from cse_core.encoders.shortcuts import WordTable


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


def test_a_gradient_that_another_use_made_is_added_to():
    ours, theirs = tables()
    ids = torch.tensor([4, 4, 7])
    (WordTable(ours)(ids).sum() + (ours.weight**2).sum()).backward()
    (theirs(ids).sum() + (theirs.weight**2).sum()).backward()
    torch.testing.assert_close(ours.weight.grad, theirs.weight.grad)


def test_gradients_of_the_embeddings_alone_leave_the_table():
    table, _ = tables()
    words = WordTable(table)(torch.tensor([1, 2]))
    (gradient,) = torch.autograd.grad((words**2).sum(), [words])
    torch.testing.assert_close(gradient, 2 * words.detach())
    assert table.weight.grad is None


def test_a_frozen_table_and_a_copy_have_gradients_of_their_own():
    table, _ = tables()
    look_up = WordTable(table)
    other = copy.deepcopy(look_up)
    assert other.table is not table
    other(torch.tensor([1])).sum().backward()
    assert table.weight.grad is None
    table.weight.requires_grad_(False)
    assert not look_up(torch.tensor([1])).requires_grad
