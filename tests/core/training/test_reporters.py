"""Reporters beside the caller's: told the same, made at the start, never in the way."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cse_core.errors import CseError
from cse_core.runtime.reporter import Reporter
from cse_core.training.reporters import Reporters


class Ears(Reporter):
    def __init__(self, fails_in: str = "") -> None:
        self.heard: list[str] = []
        self.fails_in = fails_in

    def _hear(self, what: str) -> None:
        self.heard.append(what)
        if what == self.fails_in:
            raise OSError("the disk is full")

    def start(self, folder: Path, settings: Mapping[str, Any]) -> None:
        self._hear("start")

    def step(self, step: int) -> None:
        self._hear(f"step {step}")

    def warning(self, text: str) -> None:
        self._hear(f"warning {text}")


def test_others_hear_from_the_start_on() -> None:
    own, other = Ears(), Ears()
    both = Reporters(own, {"other": lambda: other})
    both.step(1)
    both.start(Path(), {})
    both.step(2)
    assert own.heard == ["step 1", "start", "step 2"]
    assert other.heard == ["start", "step 2"]


def test_one_that_fails_is_left_out_with_one_warning() -> None:
    own, bad, good = Ears(), Ears("step 1"), Ears()
    all_ = Reporters(own, {"bad": lambda: bad, "good": lambda: good})
    all_.start(Path(), {})
    all_.step(1)
    all_.step(2)
    warning = "warning reporter bad failed and hears nothing more: OSError: the disk is full"
    assert own.heard == ["start", "step 1", warning, "step 2"]
    assert bad.heard == ["start", "step 1"]
    assert good.heard == ["start", "step 1", "step 2"]


def test_one_that_cannot_be_made_is_left_out() -> None:
    own = Ears()
    all_ = Reporters(own, {"none": lambda: Ears(1 / 0)})  # type: ignore[arg-type]
    all_.start(Path(), {})
    assert own.heard[0].startswith("warning reporter none failed")


def test_the_callers_own_may_fail() -> None:
    all_ = Reporters(Ears("step 1"), {})
    with pytest.raises(OSError, match="full"):
        all_.step(1)


def test_a_mistake_of_the_user_is_an_error_before_the_run() -> None:
    """What a reporter says it lacks is said before anything is written, not as a warning."""

    def lacking() -> Reporter:
        raise CseError("needs a module", hint="pip install it")

    with pytest.raises(CseError, match="pip install it"):
        Reporters(Ears(), {"lacking": lacking})
