"""When a run stops: patience with its unit, and signals."""

import os
import signal

import pytest
from pydantic import ValidationError

from cse_engine.compose.settings import TrainOptions
from cse_engine.run import signals
from cse_engine.run.intervals import Intervals
from cse_engine.run.signals import StopSignals


def test_units() -> None:
    for patience, evaluate, per_epoch, wanted in (
        (3, 125, 40, 3),
        ("3 evaluations", 125, 40, 3),
        ("20000 steps", 1000, 40, 20),
        ("20001 steps", 1000, 40, 21),
        ("1 step", 1000, 40, 1),
        ("2 epochs", 16, 16, 2),
        ("2 epochs", 10, 16, 4),
        ("1epoch", 100, 16, 1),
    ):
        assert Intervals(1, evaluate, 0, 9).evaluations(patience, per_epoch) == wanted
    for value in (0, -1, "0 steps", "two epochs", "5 minutes", "2.5 epochs"):
        with pytest.raises(ValidationError, match="must be"):
            TrainOptions(patience=value)


def test_what_is_due_after_a_step() -> None:
    intervals = Intervals(log=2, evaluate=3, save=4, total=7)
    due = [intervals.due(step, scored=True) for step in range(1, 8)]
    assert [step for step, after in enumerate(due, 1) if after.log] == [2, 3, 4, 6, 7]
    assert [step for step, after in enumerate(due, 1) if after.score] == [3, 6, 7]
    assert [step for step, after in enumerate(due, 1) if after.save] == [4, 7]
    assert intervals.due(3, scored=False) == (False, False, False)
    assert Intervals(2, 0, 0, 7).due(7, scored=True) == (True, False, True)


def test_signals_that_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    with StopSignals(list) as asked:
        assert not asked.asked
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGTERM)
        assert asked.asked
    for ignored in (False, True):
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN if ignored else signal.SIG_DFL)
        with StopSignals(list) as asked:
            os.kill(os.getpid(), signal.SIGHUP)
            assert asked.asked is not ignored
        signal.signal(signal.SIGHUP, before)
    before = signal.getsignal(signal.SIGTERM)
    with StopSignals(list):
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before
    now = 100.0
    monkeypatch.setattr(signals.time, "monotonic", lambda: now)
    with StopSignals(list) as asked:
        os.kill(os.getpid(), signal.SIGINT)
        assert asked.asked
        os.kill(os.getpid(), signal.SIGINT)
        now += 1.5
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
