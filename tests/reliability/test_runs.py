"""The tables of damages, kills and machine troubles; a sample fast, all of them under ``slow``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

import pytest

from tests.reliability import damages, kills, machine, neighbours, terminal
from tests.reliability.outcomes import GOOD
from tests.reliability.server import Server, the_server

TABLES: dict[str, tuple[Callable[[Server], Iterable[Any]], Callable[..., Any]]] = {
    "damages": (lambda _: damages.damages(), damages.tried),
    "kills": (kills.kills, kills.tried),
    "machine": (lambda _: machine.troubles(), machine.tried),
    "terminal": (lambda _: terminal.terminal_cases(), terminal.tried),
    "neighbours": (lambda _: neighbours.neighbours(), neighbours.tried),
}
"""Cases of each table, and what tries one: its outcome, the answer, and what was printed."""
SAMPLE = 100, 33
"""Of the first so many cases of a table, one in so many is in the sample."""
PARTS = 8
"""Tests that a table is cut into, so that processes share it."""


def check(table: str, chosen: Callable[[Iterable[Any]], Iterable[Any]]) -> None:
    """Try cases of a table; a line of each that is not as expected."""
    server = the_server()
    make, tried = TABLES[table]
    wrong: list[Any] = []
    for case in chosen(make(server)):
        outcome, answer, printed = tried(case, server)
        if outcome not in GOOD:
            wrong.append((case.label, outcome, printed, answer))
    assert wrong == []


@pytest.mark.parametrize(
    "table",
    ["damages", "kills", "machine", pytest.param("neighbours", marks=pytest.mark.slow)],
)
def test_a_sample(table: str) -> None:
    """The sample of what reaches the terminal is in test_terminal.py."""
    first, every = SAMPLE

    def sample(cases: Iterable[Any]) -> Iterable[Any]:
        return (c for c in islice(cases, 0, first, every) if getattr(c, "run", "") != "rounds")

    check(table, sample)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("table", TABLES)
def test_all(table: str, part: int) -> None:
    check(table, lambda cases: islice(cases, part, None, PARTS))
