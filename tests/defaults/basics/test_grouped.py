"""The order that a part gives the rows of an epoch, and batches of one group."""

from collections import Counter
from typing import Any

import pytest
import torch
from cse_testkit import run_steps, tiny_corpus
from torch import Tensor

from cse_core.errors import CseError, PartError
from tests.fixtures.tiny import Build, sentences

GROUPS = [*"aaaaaaaaabbbbbbbccccc", "d", "d", "d"]
RECIPE = '[[pool]]\nuse = "cls"\n[[loss]]\nuse = "infonce"\n[[sampler]]\nuse = "grouped"\n'
COLUMNS = {"text": sentences(24), "group": GROUPS}


def epochs(build: Build, count: int, **columns: Any) -> list[list[Tensor]]:
    loop = build(RECIPE, "train.batch_size=4", columns={**COLUMNS, **columns}).loop
    each = loop.batches.per_epoch
    return [[loop.batches.at(epoch * each + n) for n in range(each)] for epoch in range(count)]


def test_a_batch_has_rows_of_one_group_while_there_are_enough(build: Build) -> None:
    one, two = epochs(build, 2)
    for batches in (one, two):
        assert sorted(torch.cat(batches).tolist()) == list(range(24))
        groups = [Counter(GROUPS[row] for row in batch.tolist()) for batch in batches]
        pure = [each for each in groups if len(each) == 1 and each.total() == 4]
        # 9, 7, 5 and 3 rows: two batches of a, one of b, one of c; eight rows are left.
        assert [len(each) for each in groups[:4]] == [1, 1, 1, 1] and len(pure) >= 4
    assert [b.tolist() for b in one] != [b.tolist() for b in two]
    again = epochs(build, 2)[1]
    assert [b.tolist() for b in again] == [b.tolist() for b in two], "resumed, the same"


def test_groups_smaller_than_a_batch_are_named(build: Build) -> None:
    columns = {**COLUMNS, "group": [str(row) for row in range(24)]}
    loop = build(RECIPE, "train.batch_size=4", columns=columns).loop
    loop.step()
    assert [*loop.idle()] == ["sampler.grouped arranged nothing: the rows leave it no choice"]


def test_what_no_order_is_names_the_part(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = build(RECIPE, "train.batch_size=4", columns=COLUMNS).loop
    sampler = loop.assembly.parts["sampler.grouped"]
    monkeypatch.setattr(sampler, "order", lambda rows, size, draws: torch.zeros(24).long())
    with pytest.raises(PartError, match="promised each of 24 rows once"):
        loop.batches.at(0)
    two = f'{RECIPE}[[sampler]]\nuse = "grouped"\nname = "second"\n'
    with pytest.raises(CseError, match="a run has one sampler, not grouped and second"):
        build(two, columns=COLUMNS)


def test_it_is_refused_without_the_labels() -> None:
    with pytest.raises(CseError, match="sampler.grouped.*column 'group'"):
        run_steps({"sampler": ["grouped"]}, [], steps=1, corpus=tiny_corpus())
