"""The tables of damages, kills and machine troubles; a sample fast, all of them under ``slow``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

import pytest

from tests.reliability.__main__ import OWN
from tests.reliability.outcomes import GOOD
from tests.reliability.server import the_server

SAMPLE = 100, 33
"""Of the first so many cases of a table, one in so many is in the sample."""
PARTS = 8
"""Tests that a table is cut into, so that processes share it."""


def check(table: str, chosen: Callable[[Iterable[Any]], Iterable[Any]]) -> None:
    server = the_server()
    make, tried = OWN[table]
    wrong: list[Any] = []
    for case in chosen(make(server)):
        outcome, answer, printed = tried(case, server)
        if outcome not in GOOD:
            wrong.append((case.label, outcome, printed, answer))
    assert wrong == []


@pytest.mark.parametrize(
    "table",
    [pytest.param(name, marks=pytest.mark.slow) if name == "neighbours" else name for name in OWN],
)
def test_a_sample(table: str) -> None:
    first, every = SAMPLE

    def sample(cases: Iterable[Any]) -> Iterable[Any]:
        return (c for c in islice(cases, 0, first, every) if getattr(c, "run", "") != "rounds")

    check(table, sample)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("table", OWN)
def test_all(table: str, part: int) -> None:
    check(table, lambda cases: islice(cases, part, None, PARTS))
