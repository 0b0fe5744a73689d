"""What every test of this repository shares."""

from __future__ import annotations

import os

import pytest

# A test writes nothing into the user's cache; those of the cache name a folder of their own.
os.environ["CSE_CACHE"] = "off"


@pytest.fixture(autouse=True)
def toolkit_came_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let hints be those of a toolkit that was installed by name; else they name this checkout."""
    monkeypatch.setattr("cse_cli.plugins.install_hints.origin", dict)
