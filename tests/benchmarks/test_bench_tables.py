"""tests/benchmarks/: repeats, ratios, aims, inputs, results and the page that is made of them."""

import json
from pathlib import Path

import pytest

from tests.benchmarks import __main__ as whole
from tests.benchmarks import report as reports
from tests.benchmarks import work as works
from tests.benchmarks.inputs import Shape
from tests.benchmarks.report import BY_KEY, ROOT, ROWS, Row, alternate, machine, ratios, spread
from tests.benchmarks.sections import rows_of
from tests.benchmarks.work import Work


def test_repeats_alternate_and_ratios_are_of_the_same_repeat() -> None:
    calls: list[str] = []

    def work(name: str) -> int:
        calls.append(name)
        return len(calls)

    found = alternate({"a": lambda: work("a"), "b": lambda: work("b")}, repeats=2)
    assert "".join(calls) == "abbaab", "the warm one counts for nothing"
    assert found == {"a": [4, 5], "b": [3, 6]}
    assert spread(ratios([4.0, 9.0, 10.0], [2.0, 3.0, 10.0])) == "2.00 [1.00-3.00]"
    with pytest.raises(ValueError):
        ratios([1.0], [1.0, 2.0])
    row = Row("training.x", "what", "against", "<= 3", "s")
    assert row.cells([3.111], "") == ["what", "against", "3.111 s", "at most 3 s", "no"]
    assert Row("training.x", "w", "a", ">= 1.75").say_met([1.0, 1.75, 9.0]) == "yes"
    assert Row("training.x", "w", "a").cells([], "none yet")[2:] == ["none yet", "none", "-"]


def test_rows_and_operations_are_counted_by_hand() -> None:
    work = Work("hicl", "", "", length=512, batch=2, steps=1)
    lengths = [70, 10, 600]
    assert rows_of("simcse", lengths, work) == [72, 12, 512]
    assert rows_of("peer", lengths, work) == [72, 72, 512]
    segments = rows_of("hicl", lengths, work)
    assert segments[:4] == [34, 34, 8, 12]
    assert len(segments) == 4 + 16 and sum(segments[4:]) == 510 + 16 * 2
    linear = 3 * 2 * (4 * 4 * 4 + 2 * 4 * 16)
    attention = 2 * 2 * 4 * 3 * 3  # scores and weighted sum, 3 by 3, 4 dimensions
    assert Shape(layers=2, hidden=4).operations([3]) == 2 * (linear + attention)


def test_results_become_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def measured(*words: str, stdout: object) -> str:
        report = reports.Report(words[1], busy=0.4)
        if report.section == "memory":
            raise SystemExit("failed: memory")
        report.say("What was compared.")
        report.add("fp32", [1.7, 1.9, 2.0], "of a file")
        report.table("Speeds", ["a", "b"], [["1|2", "3"]])
        with pytest.raises(KeyError, match="training.nothing"):
            report.add("nothing", [1.0])
        Path(words[-1]).write_text(json.dumps({**report.as_dict(), "command": "it"}))
        return ""

    monkeypatch.setattr(works, "child", measured)
    monkeypatch.setattr(reports, "code", lambda: "0123abc")
    monkeypatch.setattr(whole, "OUT", tmp_path)
    assert whole.main(["training", "memory", "--quick"]) == 1
    assert "failed: memory" in capsys.readouterr().out
    text = (tmp_path / "quick/page.md").read_text()
    assert "smoke run" in text and f"| processor | {machine()['processor']} |" in text
    line = next(line for line in text.splitlines() if line.startswith(f"| {ROWS[0].what}"))
    assert "(of a file)" in line and line.endswith(
        "| 1.90 [1.70-2.00] | at least 1.75 | measure it again |"
    )
    rows = [line for line in text.splitlines() if "sentences/s in training, bf16" in line]
    assert rows and all("not measured yet" in row for row in rows)
    assert "Speeds:\n\n| a | b |\n| --- | --- |\n| 1\\|2 | 3 |" in text
    assert "`it`" in text and "commit 0123abc." in text
    assert "**Others used 40% of the processor when it began" in text
    assert text.count("\nNot measured yet.\n") == len(whole.SECTIONS) - 1
    for words, printed in ((["nothing"], "there are"), (["--texts", "no"], "no such file")):
        with pytest.raises(SystemExit):
            whole.arguments(words)
        assert printed in capsys.readouterr().err


def test_the_page_of_the_docs_has_the_rows_of_today() -> None:
    assert len(BY_KEY) == len(ROWS)
    text = (ROOT / "docs/performance.md").read_text(encoding="utf-8")
    assert text.startswith(whole.INTRODUCTION)
    for row in ROWS:
        lines = [line for line in text.splitlines() if line.startswith(f"| {row.what}")]
        assert any(row.against in line and (not row.aim or row.say_aim() in line) for line in lines)
    for section in whole.SECTIONS:
        assert f"\n## {section.title}\n" in text
