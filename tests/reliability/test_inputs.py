"""The tables of inputs; a sample of them fast, all of them under ``slow``."""

from __future__ import annotations

import pytest

from tests.reliability.inputs import InputCase, input_cases, tried
from tests.reliability.outcomes import GOOD
from tests.reliability.server import the_server

CASES = input_cases()
EVERY = 23
"""One case in so many is in the sample."""


def check(case: InputCase) -> None:
    outcome, answer = tried(case, the_server())
    assert outcome in GOOD, (outcome, answer)


@pytest.mark.parametrize("case", CASES[::EVERY], ids=lambda case: case.label)
def test_an_input_of_the_sample(case: InputCase) -> None:
    check(case)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)
def test_an_input(case: InputCase) -> None:
    check(case)


def test_no_case_is_there_twice() -> None:
    labels = [case.model_dump_json() for case in CASES]
    assert len(set(labels)) == len(labels)
