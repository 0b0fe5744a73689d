"""tests.benchmarks/: repeats, ratios, aims, inputs, results and the page that is made of them."""

import argparse
import importlib
import json
import sys
from pathlib import Path

import pytest

from tests.benchmarks import __main__ as whole
from tests.benchmarks import page as pages
from tests.benchmarks.hicl import rows_of
from tests.benchmarks.inputs import Shape, enough, full_rows, mix_lengths
from tests.benchmarks.inside import Stopwatch, timed_methods
from tests.benchmarks.machine import busy, machine
from tests.benchmarks.measure import alternate, differences, ratios, spread
from tests.benchmarks.report import Report, in_columns
from tests.benchmarks.resident import forget_peak, in_own_process, peak, resident
from tests.benchmarks.rows import BY_KEY, ROWS, Aim, Row
from tests.benchmarks.sections import SECTIONS
from tests.benchmarks.work import Work

ROOT = Path(__file__).resolve().parents[2]
HERE = {"processor": "one", "cores": "2"}


def result(section: str = "memory", **changes: object) -> dict[str, object]:
    return {
        "section": section,
        "command": f"python -m tests.benchmarks.{section}",
        "values": {},
        "notes": {},
        "skipped": {},
        "said": ["What was compared."],
        "tables": [],
        "began": "2026-01-31",
        "seconds": 90.0,
        "busy": 0.01,
        "threads": 2,
        "machine": HERE,
        "code": "0123abc",
        **changes,
    }


def line_of(text: str, key: str) -> list[str]:
    what = BY_KEY[key].what
    (line,) = (line for line in text.splitlines() if line.startswith(f"| {what}"))
    return [cell.strip() for cell in line.strip("|").split("|")]


# -- repeats ----------------------------------------------------------------------------------


def test_repeats_alternate_there_and_back_and_the_warm_one_counts_for_nothing() -> None:
    calls: list[str] = []

    def work(name: str) -> int:
        calls.append(name)
        return len(calls)

    found = alternate({"a": lambda: work("a"), "b": lambda: work("b")}, repeats=2)
    assert "".join(calls) == "abbaab"
    assert found == {"a": [4, 5], "b": [3, 6]}


def test_ratios_are_of_the_same_repeat_and_their_median_is_not_that_of_the_medians() -> None:
    found = ratios([4.0, 9.0, 10.0], [2.0, 3.0, 10.0])
    assert found == [2.0, 3.0, 1.0]
    assert spread(found) == "2.00 [1.00-3.00]"
    assert spread([0.5], ".3f") == "0.500"
    with pytest.raises(ValueError):
        ratios([1.0], [1.0, 2.0])


def test_differences_are_of_neighbours() -> None:
    assert differences([1.0, 3.0, 7.0]) == [2.0, 4.0]
    assert differences([1.0]) == []


def test_an_aim_is_a_bound_of_the_median() -> None:
    assert Aim(1.75, least=True).met([1.0, 1.75, 9.0])
    assert not Aim(1.75, least=True).met([1.0, 1.74, 9.0])
    assert Aim(3).met([9.0, 3.0, 1.0])
    row = Row("training.x", "what", "against", "%", Aim(3))
    assert row.say([3.111]) == "3.11 %"
    assert (row.say_aim(), row.say_met([4.0])) == ("at most 3 %", "no")
    plain = Row("training.x", "what", "against")
    assert (plain.say_aim(), plain.say_met([4.0])) == ("none", "-")


def test_a_stopwatch_counts_nested_calls_once_and_only_inside_another() -> None:
    class Sleeper:
        def outer(self) -> int:
            return self.inner()

        def inner(self) -> int:
            return 7

    watch = Stopwatch()
    inside = Stopwatch(only_inside=watch)
    own = Sleeper.inner
    with timed_methods(Sleeper, ["outer"], watch), timed_methods(Sleeper, ["inner"], inside):
        Sleeper().inner()
        assert inside.seconds == 0
        assert Sleeper().outer() == 7
    assert 0 < inside.seconds <= watch.seconds
    assert Sleeper.inner is own


# -- inputs -----------------------------------------------------------------------------------


def test_texts_are_made_of_the_others_words_where_there_are_too_few() -> None:
    texts = ["one two three four five", "six seven eight"]
    made = enough(texts, 5)
    assert made[:2] == texts and len(made) == 5
    assert sorted(made[2].split()) == sorted(texts[0].split())
    assert enough(texts, 1) == texts[:1]
    with pytest.raises(SystemExit):
        enough([], 1)


def test_mixed_rows_keep_the_order_of_the_words() -> None:
    words = [f"w{number}" for number in range(5000)]
    rows = mix_lengths([" ".join(words)], 100, lambda each: [1] * len(each))
    assert " ".join(rows).split() == words[: sum(len(row.split()) for row in rows)]
    lengths = sorted(len(row.split()) for row in rows)
    assert 12 < lengths[len(rows) // 2] < 22 and lengths[-1] > 35
    halves = mix_lengths([" ".join(words)], 100, lambda each: [2] * len(each))
    assert " ".join(halves).split() == words[: sum(len(row.split()) for row in halves)]
    shorter = sorted(len(row.split()) for row in halves)
    assert 5 < shorter[len(halves) // 2] < 12, "lengths are of tokens"
    assert [len(row.split()) for row in full_rows(["a b c"], 2, words=7)] == [7, 7]


def test_rows_that_an_encoder_sees() -> None:
    work = Work("hicl", "", "", length=512, batch=2, steps=1)
    lengths = [70, 10, 600]
    assert rows_of("simcse", lengths, work) == [72, 12, 512]
    assert rows_of("peer", lengths, work) == [72, 72, 512]
    segments = rows_of("hicl", lengths, work)
    assert segments[:4] == [34, 34, 8, 12]
    assert len(segments) == 4 + 16 and sum(segments[4:]) == 510 + 16 * 2
    whole_rows = rows_of("hicl", [70], Work(**{**vars(work), "wrap": "sentence"}))
    assert whole_rows == [32, 32, 8]


def test_operations_of_a_layer_are_counted_by_hand() -> None:
    shape = Shape(layers=2, hidden=4)
    linear = 3 * 2 * (4 * 4 * 4 + 2 * 4 * 16)
    attention = 2 * 2 * 4 * 3 * 3  # scores and weighted sum, 3 by 3, 4 dimensions
    assert shape.operations([3]) == 2 * (linear + attention)


# -- machine ----------------------------------------------------------------------------------


def test_the_machine_is_told_without_torch() -> None:
    found = machine()
    assert found["cores"].isdigit() and found["torch"][0].isdigit()
    assert all(isinstance(value, str) and value for value in found.values())
    share = busy(0.05)
    assert share is None or 0 <= share <= 1


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux forgets a peak")
def test_the_peak_is_that_since_it_was_forgotten() -> None:
    held = bytearray(200 << 20)
    del held
    before = peak()
    if not forget_peak():
        pytest.skip("this system does not let a process forget its peak")
    assert peak() < before - 100
    assert abs(peak() - resident()) < 20
    held = bytearray(100 << 20)
    assert peak() > resident() - 5 and len(held)


def test_a_process_that_fails_says_with_what(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="tests.benchmarks.nothing failed with .*1"):
        in_own_process("tests.benchmarks.nothing", {"a": 1})


# -- sections, rows and commands ----------------------------------------------------------------


def test_every_row_has_a_section_and_every_section_a_row() -> None:
    assert len(BY_KEY) == len(ROWS)
    assert {row.section for row in ROWS} == {section.name for section in SECTIONS}


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.name)
@pytest.mark.parametrize("quick", [True, False])
def test_a_benchmark_takes_its_own_sizes(section, quick: bool) -> None:  # type: ignore[no-untyped-def]
    module = importlib.import_module(f"tests.benchmarks.{section.name}")
    words = section.words(quick=quick, texts="t.txt", articles="a.jsonl")
    options = module.arguments([*words, "--json", "out.json"])
    assert isinstance(options, argparse.Namespace)
    assert quick or options.repeats >= 5
    assert getattr(options, "texts", None) == ("t.txt" if section.texts else None)
    assert getattr(options, "articles", None) == ("a.jsonl" if section.articles else None)
    shown = section.command(quick=quick, texts="/far/away/t x.txt", articles=None)
    assert "far" not in shown and ("'t x.txt'" in shown) == section.texts


def test_importing_the_benchmarks_loads_nothing_heavy() -> None:
    code = (
        "import sys, tests.benchmarks.__main__, tests.benchmarks.parts;"
        "import tests.benchmarks.mining, tests.benchmarks.memory;"
        "print([m for m in ('torch', 'transformers', 'sentence_transformers') if m in sys.modules])"
    )
    import subprocess

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


# -- results ------------------------------------------------------------------------------------


def test_a_report_keeps_what_rows_py_knows(tmp_path: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    report = Report("training", busy=0.0)
    report.add("fp32", [1.23456789, 2.0], "a note")
    report.skip("bf16", "no instructions")
    report.table("Title", ["a", "b"], [["1", "2"]])
    with pytest.raises(KeyError, match="no row training.nothing"):
        report.add("nothing", [1.0])
    report.finish(str(tmp_path / "found.json"))
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["values"] == {"training.fp32": [1.2346, 2.0]}
    assert found["skipped"] == {"training.bf16": "no instructions"}
    assert found["machine"] == machine() and found["threads"] >= 1
    shown = capsys.readouterr().out
    assert "at least 1.75" in shown and "no instructions" in shown.split("left out")[1]
    assert in_columns([["a", "bb"], ["ccc", "d"]]) == "a    bb\nccc  d"


def test_results_are_read_up_to_a_line_that_was_cut_and_go_on_behind_it(tmp_path: Path) -> None:
    book = tmp_path / "results.jsonl"
    assert whole.read(book) == []
    whole.keep(book, result("memory"))
    with book.open("a") as file:
        file.write('{"section": "min')
    whole.keep(book, result("startup"))
    assert [each["section"] for each in whole.read(book)] == ["memory", "startup"]


def test_what_is_there_is_of_the_same_command_and_machine(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(whole, "machine", lambda: HERE)
    monkeypatch.setattr(whole, "code", lambda: "0123abc")
    there = [result("memory", command="python x")]
    assert whole.is_there(there, "memory", "python x")
    assert not whole.is_there(there, "memory", "python y")
    assert not whole.is_there(there, "mining", "python x")
    monkeypatch.setattr(whole, "code", lambda: "456def")
    assert not whole.is_there(there, "memory", "python x")
    monkeypatch.setattr(whole, "code", lambda: "0123abc")
    monkeypatch.setattr(whole, "machine", lambda: {**HERE, "cores": "4"})
    assert not whole.is_there(there, "memory", "python x")


def test_a_run_measures_what_is_missing_and_says_what_failed(tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    asked: list[str] = []

    def measure(section, options):  # type: ignore[no-untyped-def]
        asked.append(section.name)
        return None if section.name == "mining" else result(section.name)

    monkeypatch.setattr(whole, "measure", measure)
    monkeypatch.setattr(whole, "machine", lambda: HERE)
    monkeypatch.setattr(whole, "code", lambda: "0123abc")
    page = tmp_path / "page.md"
    words = ["x", "startup", "mining", "--quick", "--out", str(tmp_path), "--page", str(page)]
    monkeypatch.setattr(sys, "argv", words)
    assert whole.main() == 1
    assert asked == ["startup", "mining"]
    (line,) = (tmp_path / "quick.jsonl").read_text().splitlines()
    assert json.loads(line)["command"].startswith("python -m tests.benchmarks.startup --repeats 1")
    assert "smoke run" in page.read_text()
    assert whole.main() == 1
    assert asked == ["startup", "mining", "mining"]


def test_mistakes_on_the_command_line_are_told(capsys) -> None:  # type: ignore[no-untyped-def]
    for words, printed in (
        (["nothing"], "there are startup"),
        (["--texts", "no.txt"], "no such file"),
    ):
        with pytest.raises(SystemExit) as stopped:
            whole.arguments(words)
        assert stopped.value.code == 2
        assert printed in capsys.readouterr().err


# -- the page -----------------------------------------------------------------------------------


def test_a_page_without_results_has_every_row_and_no_number() -> None:
    text = pages.page([])
    assert "Nothing is measured yet." in text
    assert text.count("| not measured yet |") == len(ROWS)
    assert text.count("\nNot measured yet.\n") == len(SECTIONS)
    for row in ROWS:
        assert any(line.startswith(f"| {row.what} | {row.against} |") for line in text.splitlines())


def test_a_page_tells_medians_aims_notes_and_what_was_left_out() -> None:
    found = result(
        "training",
        values={"training.fp32": [1.7, 1.9, 2.0]},
        notes={"training.fp32": "of a file"},
        skipped={"training.bf16": "no bf16 here"},
        tables=[{"title": "Speeds", "head": ["a", "b"], "lines": [["1|2", "3"]]}],
    )
    text = pages.page([found])
    what, _, printed, aim, met = line_of(text, "training.fp32")
    assert what.endswith("(of a file)")
    assert (printed, aim, met) == ("1.90 [1.70-2.00]", "at least 1.75", "yes")
    assert "## Training\n\n`python -m tests.benchmarks.training`\n" in text
    rows = [line for line in text.splitlines() if "sentences per second in training, bf16" in line]
    assert "left out: no bf16 here" in rows[0] and "not measured yet" in rows[1]
    assert "Speeds:\n\n| a | b |\n| --- | --- |\n| 1\\|2 | 3 |" in text
    assert "Measured on 2026-01-31 in 1.5 minutes, commit 0123abc." in text
    assert "Others used" not in text


def test_a_page_takes_the_last_result_of_one_machine_and_warns_of_company() -> None:
    elsewhere = result("mining", machine={"processor": "other"})
    old = result("memory", values={"memory.chunked": [9.0]})
    new = result("memory", values={"memory.chunked": [1.6]}, busy=0.4)
    text = pages.page([elsewhere, old, new])
    assert line_of(text, "memory.chunked")[2:5] == ["1.60", "at most 1.5", "no"]
    assert line_of(text, "mining.clustering")[2] == "not measured yet"
    assert "**Others used 40% of the processor when it began" in text
    assert "other" not in text.split("## Comparisons")[0].split("## Machine")[1]


def test_the_page_of_the_docs_has_the_rows_of_today() -> None:
    text = (ROOT / "docs/performance.md").read_text(encoding="utf-8")
    assert text.startswith(pages.HEAD)
    for row in ROWS:
        lines = [line for line in text.splitlines() if line.startswith(f"| {row.what}")]
        assert any(row.against in line and row.say_aim() in line for line in lines), row.key
    for section in SECTIONS:
        assert f"\n## {section.title}\n" in text
    assert "docs/performance.md" in (ROOT / "README.md").read_text(encoding="utf-8")
