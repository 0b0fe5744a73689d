"""A run says where the system takes much of the processor's time, and what to type."""

import os

import pytest

from cse_cli.training import pages
from cse_cli.training.pages import PagesWatch, pages_advice

START = os.times_result((100.0, 20.0, 0.0, 0.0, 0.0))


def later(monkeypatch: pytest.MonkeyPatch, user: float, system: float) -> None:
    """Let so many more seconds be over, on a system with glibc and tcmalloc in a file."""
    now = os.times_result((START.user + user, START.system + system, 0.0, 0.0, 0.0))
    monkeypatch.setattr(pages, "by_tcmalloc", lambda: False)
    monkeypatch.setattr("ctypes.util.find_library", lambda _: "libtc.so.4")
    monkeypatch.setattr("os.times", lambda: now)
    monkeypatch.setattr("platform.libc_ver", lambda: ("glibc", "2.36"))


def test_what_the_system_takes_is_said_with_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    later(monkeypatch, 70.0, 30.0)
    said = pages_advice(START)
    assert said is not None and said.startswith("the system takes 30% of the processor's time")
    assert said.endswith("; run the command with LD_PRELOAD=libtc.so.4")
    monkeypatch.setattr("ctypes.util.find_library", lambda _: None)
    said = pages_advice(START)
    assert said is not None and "; install tcmalloc (Debian, Ubuntu: libtcmalloc-minimal4)" in said
    assert said.endswith("then run the command with LD_PRELOAD=libtcmalloc_minimal.so.4")
    monkeypatch.setattr(pages, "by_tcmalloc", lambda: True)
    assert pages_advice(START) is None, "it is there"


def test_little_or_a_short_time_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for user, system in ((90.0, 10.0), (5.0, 4.0)):
        later(monkeypatch, user, system)
        assert pages_advice(START) is None
    later(monkeypatch, 70.0, 30.0)
    monkeypatch.setattr("platform.libc_ver", lambda: ("", ""))
    assert pages_advice(START) is None, "musl, or another system"


def test_a_run_is_warned_once_and_of_its_own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.times", lambda: START)
    watch = PagesWatch()
    later(monkeypatch, 70.0, 30.0)
    watch.begin(0, 10, 0)
    assert not watch.check({}, {}), "what was before the first step does not count"
    later(monkeypatch, 140.0, 60.0)
    assert len(watch.check({}, {})) == 1
    assert not watch.check({}, {})
