from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cse_evaluation.item_files import write_pairs_out
from cse_evaluation.pairs import PairSet, pairs_from_rows, read_pairs
from cse_evaluation.report import comparison_table, difference, results_json, results_tables
from cse_evaluation.sts import Result, evaluate_sts
from rich.console import Console
from rich.table import Table

from cse_cli.machine.out_files import check_out_file
from cse_core.errors import CseError


def graded(name: str, count: int = 10) -> PairSet:
    return pairs_from_rows(
        name,
        [
            {"subset": f"p{i % 2}", "sentence1": f"l {i}", "sentence2": f"r {i}", "score": i / 2}
            for i in range(count)
        ],
    )


@pytest.fixture
def results(encoder: Any) -> list[Result]:
    return evaluate_sts(encoder, [graded("stsb.test"), graded("sts12.test"), graded("mine.dev")])


def shown(*tables: Table, width: int = 200) -> str:
    console = Console(width=width, record=True, file=open(os.devnull, "w"))
    for table in tables:
        console.print(table)
    return console.export_text()


def test_json_has_the_promised_form(results: list[Result]) -> None:
    value = json.loads(json.dumps(results_json(results), allow_nan=False))
    assert list(value) == ["results"]
    assert list(value["results"]) == ["stsb.test", "sts12.test", "mine.dev", "mean-of-2"]
    one = value["results"]["stsb.test"]
    assert one["spearman"] == pytest.approx(results[0].spearman, abs=1e-4)
    assert (one["pairs"], one["setting"], one["split"], one["seeds"]) == (10, "all", "test", 1)
    assert one["subsets"]["p0"]["pairs"] == 5
    assert {"tfidf", "jaccard", "alignment", "uniformity", "singular_values"} <= set(one)
    assert one["alignment"]["file"] == "stsb.test"
    assert value["results"]["mean-of-2"]["sets"] == ["stsb.test", "sts12.test"]


def test_table_names_split_setting_and_pairs(results: list[Result]) -> None:
    text = shown(*results_tables(results, "some model", subsets=True))
    assert "some model" in text
    (line,) = [line for line in text.splitlines() if "stsb.test" in line]
    cells = [cell.strip() for cell in line.strip(" │").split("│")]
    geometry = results[0].geometry
    assert geometry is not None
    assert cells[:5] == ["stsb.test", "test", "all", "10", f"{results[0].spearman:.2f}"]
    assert cells[7] == f"{geometry.alignment:.3f} (1, 4)"
    assert cells[8] == f"{geometry.uniformity:.3f} (20)"
    assert sum("p1" in line for line in text.splitlines()) == 3
    assert "idf from the sentences of each file" in text
    assert "p1" not in shown(*results_tables(results))


def test_tables_are_whole_in_80_columns(results: list[Result]) -> None:
    tables = results_tables(results, "runs/mine", subsets=True, width=80)
    text = shown(*tables, width=80)
    assert len(tables) == 2 and "…" not in text and max(map(len, text.splitlines())) <= 80
    for words in ("Spearman", "TF-IDF", "Jaccard", "alignment", "effective", "(1, 4)", "(20)"):
        assert words in text, words
    assert len(results_tables(results, width=160)) == 1
    names = ("starter", "runs/infonce-2026-11-22-192600")
    text = shown(comparison_table(results, results, names, 80), width=80)
    assert "…" not in text and max(map(len, text.splitlines())) <= 80
    score = f"{results[0].spearman:.2f}"
    assert text.count("+0.00") == 4 and sum(score in line for line in text.splitlines()) == 4
    assert "difference" not in text  # folded, as the long name is
    text = shown(comparison_table(results[:1], results[:1], ("starter", "runs/mine"), 80), width=80)
    assert "difference" in text and "all sets: split test, setting all" in text


def test_undefined_score_is_said_in_the_table(results: list[Result]) -> None:
    text = shown(*results_tables([replace(results[0], spearman=None)]))
    assert "undefined" in text and "collapsed" in text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"setting": "wmean"}, "different setting cannot be compared: all and wmean"),
        ({"name": "stsb.dev"}, "different set"),
        ({"split": "dev"}, "different split"),
        ({"pairs": 9}, "different pairs"),
        ({"fingerprint": "0"}, "different fingerprint"),
        ({"spearman": None}, "undefined"),
    ],
)
def test_unlike_scores_are_not_compared(
    results: list[Result], change: dict[str, Any], said: str
) -> None:
    with pytest.raises(CseError, match=said):
        difference(results[0], replace(results[0], **change))


def test_comparison(results: list[Result]) -> None:
    assert results[0].spearman is not None
    before = [replace(r, spearman=r.spearman - 1.5) for r in results if r.spearman is not None]
    assert difference(results[0], before[0]) == pytest.approx(1.5)
    text = shown(comparison_table(before, results))
    assert text.count("+1.50") == 4
    with pytest.raises(CseError, match="different sets"):
        comparison_table(before[:2], results)


def test_pairs_out_can_be_read_again(tmp_path: Path, results: list[Result]) -> None:
    rows = [
        {"subset": "s", "sentence1": 'tab\there "q', "sentence2": "line\r\nbreak", "score": 0.1},
        {"sentence1": "c", "sentence2": "d", "score": 5},
    ]
    sets = [graded("stsb.test"), pairs_from_rows("mine", rows)]
    path = tmp_path / "out.tsv"
    path.write_text("old")
    write_pairs_out(path, sets, [results[0].cosines, np.array([0.25, -1.0])])
    lines = path.read_text().split("\n")
    assert lines[0] == "set\tgold\tcosine\tsubset\tsentence1\tsentence2"
    assert lines[1] == f"stsb.test\t0.0\t{results[0].cosines[0]:.6f}\tp0\tl 0\tr 0"
    assert lines[11] == 'mine\t0.1\t0.250000\ts\ttab here "q\tline break'
    again = read_pairs(path)
    assert [pair.score for pair in again.pairs[:10]] == [p.score for p in sets[0].pairs]
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.tsv"]


def test_pairs_out_mistakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CseError, match="is a folder"):
        check_out_file(tmp_path)
    with pytest.raises(CseError, match=r"folder does not exist \(got .*\); make it: mkdir -p"):
        check_out_file(tmp_path / "no" / "out.tsv")
    with pytest.raises(CseError, match="not an ordinary file"):
        check_out_file(Path("/dev/null"))
    check_out_file(tmp_path / "out.tsv")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="one cosine for each pair"):
        write_pairs_out(tmp_path / "out.tsv", [graded("x")], [np.zeros(3)])

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(CseError, match="cannot be written: No space left on device"):
        write_pairs_out(tmp_path / "out.tsv", [graded("x")], [np.zeros(10)])
    assert list(tmp_path.iterdir()) == []
