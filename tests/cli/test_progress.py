"""What a training shows while it runs."""

from __future__ import annotations

import io

import pytest

from cse_cli.terminal.progress import BarReporter, LineReporter, clock, dev_in_short, reporter_for

LINE = {"step": 1, "loss": 1.5, "lr": 2e-5, "sentences_per_second": 1234.0}


def test_the_opening_stands_above_the_first_message(capsys: pytest.CaptureFixture[str]) -> None:
    """Quiet keeps what it hears and shows nothing."""
    with reporter_for(quiet=True, json=False, opening=lambda: print("opening")) as reporter:
        reporter.message("a")
        reporter.warning("b")
        reporter.begin(0, 1, 0)
        reporter.line(LINE)
    assert capsys.readouterr() == ("", "")
    assert (reporter.messages, reporter.warnings) == (["a"], ["b"])
    with reporter_for(quiet=False, json=False, opening=lambda: print("opening")) as reporter:
        assert isinstance(reporter, LineReporter)
        assert capsys.readouterr().out == ""
        reporter.warning("one")
        reporter.message("two")
    said = capsys.readouterr()
    assert said.out == "opening\n"
    assert said.err == "warning: one\ntwo\n"


def test_lines_of_metrics_come_every_few_seconds_and_at_the_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    reporter = LineReporter(lambda: None)
    reporter.begin(0, 3, 0)
    for step in (1, 2, 3):
        reporter.line({**LINE, "step": step})
    reporter.scores(3, {"a.dev.spearman": 70.123, "a.dev.alignment": 0.1}, True)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "3 steps"
    assert [line.split(":")[0] for line in lines[1:-1]] == ["step 1 of 3", "step 3 of 3"]
    assert "loss 1.5000, lr 2.00e-05, 1,234 sentences/s" in lines[1]
    assert lines[-1] == "step 3: a.dev.spearman 70.12, the best so far"


def test_the_bar_shows_metrics_and_dev_score(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "xterm")
    reporter = BarReporter(lambda: None)
    reporter.progress(1, 2, "mining")
    reporter.begin(0, 10, 4)
    reporter.step(5)
    reporter.line({**LINE, "step": 5})
    reporter.scores(5, {"a.dev.spearman": 70.123}, False)
    reporter.end()
    shown = stream.getvalue()
    for words in ("mining", "5/10", "loss 1.500 lr 2.0e-05 1,234 sentences/s dev 70.12",
                  "step 5: a.dev.spearman 70.12"):  # fmt: skip
        assert words in shown


def test_numbers_in_short() -> None:
    assert [clock(seconds) for seconds in (0.4, 59.6, 3661)] == ["0:00", "1:00", "1:01:01"]
    assert dev_in_short({"recall": 0.5}) == "recall 0.50"
