"""What every test of this repository shares."""

import gc
import os
from collections.abc import Iterator

import pytest

from tests.fixtures.processes import TwoProcesses, fork_server

pytest_plugins = ("tests.fixtures.command_line", "tests.fixtures.distributions")

# A test writes nothing into the user's cache; those of the cache name a folder of their own.
os.environ["CSE_CACHE"] = "off"

# What collection makes stays: to look for waste in it again and again takes seconds.
gc.disable()


def pytest_collection_finish() -> None:
    """Leave what was collected aside, and look for waste again."""
    fork_server()
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def two_processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoProcesses]:
    """Two processes that do the jobs of all tests of a worker."""
    pair = TwoProcesses(tmp_path_factory.mktemp("processes"))
    yield pair
    pair.close()


@pytest.fixture(autouse=True)
def _loaded_once(request: pytest.FixtureRequest) -> None:
    asking = ("plugins/testkit/", "tests/core/registry/")
    node = request.node.nodeid
    if node.startswith(("plugins/", "tests/core/")) and not node.startswith(asking):
        request.getfixturevalue("loaded_once")


ASKED_OF_ALL = {
    "promise_two_processes_train_as_one": "tests/pairwise/test_two_processes.py",
    "promise_its_records_import_nothing_heavy": "tests/cli/test_start_up.py",
    "promise_its_commands_show_their_help": "tests/cli/test_start_up.py",
}
"""Promises that start processes, and the test that asks each of all distributions at once."""


@pytest.fixture(autouse=True)
def _asked_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    for promise, file in ASKED_OF_ALL.items() if hasattr(request.cls, "distribution") else ():
        from cse_testkit import NotMeant

        def not_here(suite: object, file: str = file) -> None:
            raise NotMeant(f"{file} asks it of all distributions")

        monkeypatch.setattr(request.cls, promise, not_here)
