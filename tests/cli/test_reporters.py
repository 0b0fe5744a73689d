"""What a training shows while it runs; reporters beside it, which are never in its way."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import Field

from cse_cli.plugins.reporters import Reporters, reporters_of
from cse_cli.terminal.progress import BarReporter, LineReporter, clock, dev_in_short, reporter_for
from cse_core.errors import CseError
from cse_core.options import Options
from cse_core.records import ReporterSpec
from cse_core.registry.registry import Registered, Registry
from cse_core.reporter import Reporter
from tests.fixtures.methods import refusal

LINE = {"step": 1, "loss": 1.5, "lr": 2e-5, "sentences_per_second": 1234.0}
MARGIN = {"infonce.negatives": 7.0, "infonce.positive_margin": 0.5244}


def test_the_opening_stands_above_the_first_message(capsys: pytest.CaptureFixture[str]) -> None:
    """Quiet keeps what it hears and shows nothing."""
    with reporter_for(quiet=True, opening=lambda: print("opening")) as reporter:
        reporter.message("a")
        reporter.warning("b")
        reporter.begin(0, 1, 0)
        reporter.line(LINE)
    assert capsys.readouterr() == ("", "")
    assert (reporter.messages, reporter.warnings) == (["a"], ["b"])
    with reporter_for(quiet=False, opening=lambda: print("opening")) as reporter:
        assert isinstance(reporter, LineReporter)
        assert capsys.readouterr().out == ""
        reporter.warning("one")
        reporter.message("two")
    said = capsys.readouterr()
    assert said.out == "opening\n"
    assert said.err == "warning: one\ntwo\n"


def test_lines_of_metrics_come_every_few_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    reporter = LineReporter(lambda: None)
    reporter.begin(0, 3, 0)
    for step in (1, 2, 3):
        reporter.line({**LINE, "step": step, "loss": 1.5 if step < 3 else 3.2e-5, **MARGIN})
    reporter.scores(3, {"a.dev.spearman": 70.123, "a.dev.alignment": 0.1}, True)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "3 steps"
    assert [line.split(":")[0] for line in lines[1:-1]] == ["step 1 of 3", "step 3 of 3"]
    assert "loss 1.5, margin 0.524, lr 2.00e-05, 1,234 sentences/s" in lines[1]
    assert "loss 3.2e-05, margin 0.524, lr" in lines[2]
    assert lines[-1] == "step 3: a.dev.spearman 70.12, the best so far"


def test_the_bar_shows_metrics_and_dev_score(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    reporter = BarReporter(lambda: None)
    reporter.progress(1, 2, "mining")
    reporter.begin(0, 1250, 600)
    reporter.step(700)
    reporter.line({**LINE, **MARGIN, "loss": 4.411e-6, "step": 700})
    reporter.scores(700, {"a.dev.spearman": 70.123}, False)
    reporter.end()
    shown = stream.getvalue()
    for words in ("mining", "700/1250", "loss 4.41e-06 margin 0.52 1,234 texts/s dev 70.12",
                  "step 700: a.dev.spearman 70.12"):  # fmt: skip
        assert words in shown
    assert [clock(seconds) for seconds in (0.4, 59.6, 3661)] == ["0:00", "1:00", "1:01:01"]
    assert dev_in_short({"recall": 0.5}) == "recall 0.50"


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

    def measure(self, anchors: torch.Tensor) -> dict[str, float]:
        return {"x": len(anchors)}

    def check(self, line: Mapping[str, float], sizes: Mapping[str, int]) -> list[str]:
        return [f"{name} of {size}" for name, size in sizes.items()]


def test_reporters_beside_the_callers() -> None:
    own, other = Ears(), Ears()
    both = Reporters(own, {"other": lambda: other})
    both.step(1)
    both.start(Path(), {})
    both.step(2)
    assert own.heard == ["step 1", "start", "step 2"]
    assert other.heard == ["start", "step 2"]
    own, bad, good = Ears(), Ears("step 1"), Ears()
    all_ = Reporters(own, {"bad": lambda: bad, "good": lambda: good})
    all_.start(Path(), {})
    all_.step(1)
    all_.step(2)
    warning = "warning reporter bad failed and gets no further messages: OSError: the disk is full"
    assert own.heard == ["start", "step 1", warning, "step 2"]
    assert bad.heard == ["start", "step 1"]
    assert good.heard == ["start", "step 1", "step 2"]
    assert all_.measure(torch.ones(2, 3)) == {"x": 2.0}
    assert all_.check({}, {"dev": 9}) == ["dev of 9"] * 2
    good.measure = lambda anchors: None  # type: ignore[method-assign, assignment, return-value]
    assert all_.measure(torch.ones(2, 3)) == {"x": 2.0} and "reporter good failed" in own.heard[-1]
    own = Ears()
    all_ = Reporters(own, {"none": lambda: Ears(1 / 0)})  # type: ignore[arg-type]
    all_.start(Path(), {})
    assert own.heard[0].startswith("warning reporter none failed")

    def lacking() -> Reporter:
        raise CseError("needs a module", hint="pip install it")

    with pytest.raises(CseError, match="pip install it"):
        Reporters(Ears(), {"lacking": lacking})
    with pytest.raises(OSError, match="full"):  # the caller's own may fail
        Reporters(Ears("step 1"), {}).step(1)


class NotesOptions(Options):
    digits: int = Field(default=2, ge=0)
    file: str = "notes.md"


class Notes(Reporter):
    def __init__(self, options: NotesOptions) -> None:
        self.options = options


NOTES = ReporterSpec(
    name="notes", summary="notes", factory=f"{__name__}:Notes", options=f"{__name__}:NotesOptions"
)
REGISTRY = Registry([Registered(NOTES, "cse-notes", "0.1.0", "cse-notes:notes")])


def test_texts_of_reporters() -> None:
    for text, line in (
        ("note", "unknown reporter (got 'note'); did you mean"),
        ("notes:digit=1", "notes.digit: unknown option (got '1'); did you"),
        ("notes:digits=x", "notes.digits: must be an integer >= 0 (got"),
        ("notes:digits=-1", "notes.digits: must be an integer >= 0 (got '-1')"),
        ("notes:file", "is not OPTION=VALUE (got 'file'); write notes:OPTION=VALUE"),
    ):
        assert refusal(reporters_of, [text], REGISTRY).startswith(f"train.report: {line}")
    (make,) = reporters_of(["notes:file=2024,digits=1"], REGISTRY).values()
    reporter = make()
    assert isinstance(reporter, Notes)
    assert reporter.options == NotesOptions(file="2024", digits=1)
