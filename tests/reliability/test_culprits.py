"""A run names the part and the distribution that broke a promise, before work is lost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.reliability.culprits import BROKEN, CULPRITS, tried
from tests.reliability.outcomes import GOOD
from tests.reliability.server import Server


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server(BROKEN)
    yield server
    server.close()


@pytest.mark.parametrize("case", CULPRITS, ids=lambda case: case[0])
def test_a_part_that_breaks_a_promise_is_named(
    case: tuple[str, int, tuple[str, ...]], server: Server
) -> None:
    outcome, answer = tried(case, server)
    assert outcome in GOOD, (outcome, answer)
