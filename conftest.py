"""What every test of this repository shares."""

import os
from collections.abc import Iterator

import pytest

from tests.fixtures.processes import TwoProcesses

pytest_plugins = ("tests.fixtures.command_line", "tests.fixtures.distributions")

# A test writes nothing into the user's cache; those of the cache name a folder of their own.
os.environ["CSE_CACHE"] = "off"


@pytest.fixture(scope="session")
def two_processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoProcesses]:
    """Two processes that do the jobs of all tests of a worker."""
    pair = TwoProcesses(tmp_path_factory.mktemp("processes"))
    yield pair
    pair.close()


@pytest.fixture(autouse=True)
def _two_processes_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave a promise that takes a start of two processes to the test of all parts at once."""
    promise = "promise_two_processes_train_as_one"
    if hasattr(request.cls, promise):
        from cse_testkit import NotMeant

        def not_here(suite: object) -> None:
            raise NotMeant("tests/pairwise/test_two_processes.py asks it of all parts")

        monkeypatch.setattr(request.cls, promise, not_here)
