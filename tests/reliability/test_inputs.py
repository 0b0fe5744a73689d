"""The tables of inputs; a sample of them fast, all of them under ``slow``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.reliability.inputs import InputCase, input_cases, tried
from tests.reliability.outcomes import GOOD
from tests.reliability.server import Server

CASES = input_cases()
EVERY = 12
"""One case in so many is in the sample."""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One process that forks for each case."""
    server = Server()
    yield server
    server.close()


def check(case: InputCase, server: Server) -> None:
    outcome, answer = tried(case, server)
    assert outcome in GOOD, (outcome, answer)


@pytest.mark.parametrize("case", CASES[::EVERY], ids=lambda case: case.label)
def test_an_input_of_the_sample(case: InputCase, server: Server) -> None:
    check(case, server)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)
def test_an_input(case: InputCase, server: Server) -> None:
    check(case, server)


def test_no_case_is_there_twice() -> None:
    labels = [case.model_dump_json() for case in CASES]
    assert len(set(labels)) == len(labels)
