"""The tables of reliability; a sample of each fast, all of them under ``slow``."""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

import pytest

from tests.reliability import damages, inputs, kills, machine, neighbours, terminal
from tests.reliability.outcomes import GOOD
from tests.reliability.server import Server, the_server

TABLES: dict[str, tuple[Callable[[Server], Iterable[Any]], Callable[..., Any]]] = {
    "inputs": (lambda _: inputs.input_cases(), inputs.tried),
    "damages": (lambda _: damages.damages(), damages.tried),
    "kills": (kills.kills, kills.tried),
    "machine": (lambda _: machine.troubles(), machine.tried),
    "terminal": (lambda _: terminal.terminal_cases(), terminal.tried),
    "neighbours": (lambda _: neighbours.neighbours(), neighbours.tried),
}
"""Cases of each table, and what tries one: its outcome, the answer, and what was printed."""
SAMPLES: dict[str, tuple[int | None, ...]] = {
    "inputs": (1, None, 47), "terminal": (0, None, 60), "kills": (0, 40, 20),
}  # fmt: skip
"""Start, end and step of a table's sample, where it differs; a sample waits for no timeout."""
SAMPLE = 0, 100, 49
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
            wrong.append((case.label, outcome, printed, ascii(answer)))
    assert wrong == []


@pytest.mark.parametrize(
    "table", [pytest.param(t, marks=[pytest.mark.slow] * (t == "neighbours")) for t in TABLES]
)
def test_a_sample(table: str) -> None:
    def sample(cases: Iterable[Any]) -> Iterable[Any]:
        chosen = islice(cases, *SAMPLES.get(table, SAMPLE))
        return (case for case in chosen if getattr(case, "run", "") != "rounds")

    check(table, sample)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("table", TABLES)
def test_all(table: str, part: int) -> None:
    check(table, lambda cases: islice(cases, part, None, PARTS))


def test_no_input_is_there_twice() -> None:
    labels = [case.model_dump_json() for case in inputs.input_cases()]
    assert len(set(labels)) == len(labels)
