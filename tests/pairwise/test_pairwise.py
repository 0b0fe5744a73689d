"""Every pair of installed parts trains a step, or the composer says why not."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest
import torch
from cse_testkit import Pairing, all_parts, pairs, try_pair

from cse_core.records import ComponentSpec
from cse_core.registry.registry import Registered

Found = Registered[ComponentSpec]
ALLOWED = float(os.environ.get("CSE_PAIR_SECONDS", "0.5"))
"""Seconds of CPU that a pair may take, so that the table stays affordable as plugins come."""


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    one, other = all_parts("loss")[0], all_parts("branch")[0]
    try_pair(one, other)  # imports and the shared encoder are paid for here
    yield
    torch.set_num_threads(before)


def label(pair: tuple[Found, Found]) -> str:
    return " + ".join(f"{each.spec.kind}.{each.name}" for each in pair)


def timed(pair: tuple[Found, Found]) -> tuple[Pairing, float]:
    began = time.process_time()
    pairing: Pairing = try_pair(*pair)
    return pairing, time.process_time() - began


@pytest.mark.parametrize("pair", list(pairs()), ids=label)
def test_a_pair_trains_or_is_refused_with_a_reason(pair: tuple[Found, Found]) -> None:
    pairing, took = timed(pair)
    if took >= ALLOWED:  # the first pair with a part also pays for its imports
        pairing, took = timed(pair)
    if pairing.verdict == "refused":
        assert pairing.reason.strip() and "\n" not in pairing.reason.strip()
        assert ";" in pairing.reason, f"no hint what to do: {pairing.reason}"
    assert took < ALLOWED, f"{took:.2f} s"


def test_the_table_has_every_pair() -> None:
    count = sum(len(all_parts(k)) for k in ("aug", "pool", "positives", "negatives", "loss"))
    count += len(all_parts("branch")) + len(all_parts("adapter"))
    assert len(list(pairs())) == count * (count - 1) // 2
