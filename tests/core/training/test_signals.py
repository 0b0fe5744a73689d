"""The first signal asks a run to stop; what a launcher repeats does not cut the answer short."""

from __future__ import annotations

import os
import signal

import pytest

from cse_core.training import signals
from cse_core.training.signals import StopSignals


def test_sigterm_asks_however_often_it_comes() -> None:
    with StopSignals(list) as asked:
        assert not asked.asked
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGTERM)
        assert asked.asked


def test_a_second_interrupt_interrupts_but_not_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(signals.time, "monotonic", lambda: now)
    with StopSignals(list) as asked:
        os.kill(os.getpid(), signal.SIGINT)
        assert asked.asked
        os.kill(os.getpid(), signal.SIGINT)
        now += 1.5
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_a_hangup_asks_unless_it_is_ignored() -> None:
    for ignored in (False, True):
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN if ignored else signal.SIG_DFL)
        with StopSignals(list) as asked:
            os.kill(os.getpid(), signal.SIGHUP)
            assert asked.asked is not ignored
        signal.signal(signal.SIGHUP, before)


def test_handlers_are_put_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with StopSignals(list):
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before
