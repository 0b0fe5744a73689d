"""Rows of runs, which score a table shows, and what it says of differences."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest
from cse_study.definition.reading import read_study
from cse_study.definition.schema import Claim
from cse_study.execution.folder import StudyFolder
from cse_study.execution.jobs import Scoring
from cse_study.planning.inputs import Inputs
from cse_study.planning.plan import Plan, Wish, plan_study
from cse_study.results.claims import verdicts_of
from cse_study.results.rows import at, merged, numbers_of, read_rows, rows_of, write_rows
from cse_study.results.scores import find_shown, flat_scores
from cse_study.results.table import NOT_SHOWN, caption, tables_of

RESULTS: dict[str, Any] = {
    "sts12.test": {"spearman": 60.5, "pairs": 10, "alignment": {"value": 0.4}, "subsets": {}},
    "stsb.test": {"spearman": 70.5, "pairs": 10},
    "stsb.dev": {"spearman": 72.5, "pairs": 10, "mutual-information.task": 4.25},
    "mean-of-2": {"spearman": 65.5, "sets": ["sts12.test", "stsb.test"]},
    "MR": {"accuracy": 80.5},
    "trec": {"accuracy": 90.5},
    "transfer.mean-of-2": {"accuracy": 85.5, "tasks": ["MR", "trec"]},
    "news.all": {"recall@5": 40.5, "documents": 300},
}
STUDY = """
summary = "x"
seeds = [1, 2, 3]
[settings]
recipe = "simcse"
model = "@model"
data = "@sentences"
dev = "@dev"
[[axes]]
values = { "loss.infonce.temperature" = [0.05, 0.1, 0.2] }
columns = { half = [1, 2, 4] }
[scores]
shown = ["a.test", "dev"]
[paper]
metric = "Spearman"
numbers = [76.4, 75.92, "-"]
[paper.variants.large]
numbers = [80, 81, 82]
"""
SCORING = Scoring("s", ("--pairs", "a.tsv"), True)


@pytest.mark.parametrize(
    ("wanted", "name", "value", "sets"),
    [
        ("sts.mean", "mean-of-2.spearman", 65.5, ("sts12.test", "stsb.test")),
        ("transfer.mean", "transfer.mean-of-2.accuracy", 85.5, ("MR", "trec")),
        ("*.recall@5", "news.all.recall@5", 40.5, ("news.all",)),
        ("stsb.dev", "stsb.dev.spearman", 72.5, ("stsb.dev",)),
        ("*.mutual-information.task", "stsb.dev.mutual-information.task", 4.25, ()),
        ("sts12.test.alignment", "sts12.test.alignment", 0.4, ()),
        ("dev", "own.dev.spearman", 50.5, ()),
        ("dev.spearman", "own.dev.spearman", 50.5, ()),
        ("mean(sts12.test, stsb.dev)", "mean(sts12.test.spearman, stsb.dev.spearman)", 66.5,
         ("sts12.test", "stsb.dev")),
    ],
)  # fmt: skip
def test_a_shown_score_is_found(
    wanted: str, name: str, value: float, sets: tuple[str, ...]
) -> None:
    scores = {"own.dev.spearman": 50.5, **flat_scores(RESULTS)}
    found = find_shown(wanted, scores, RESULTS, "own.dev.spearman")
    assert found is not None
    assert (found.name, found.value, found.sets) == (name, value, sets)


@pytest.mark.parametrize(
    ("wanted", "results", "name"),
    [
        ("sts.mean", {"sts12.test": {"spearman": 1.0}, "mean": {"spearman": 2.0}}, "mean.spearman"),
        ("sts.mean", {"stsb.test": {"spearman": 1.0}}, "stsb.test.spearman"),
        ("transfer.mean", {"mr": {"accuracy": 1.0}, "transfer.mean": {"accuracy": 2.0}},
         "transfer.mean.accuracy"),
        ("transfer.mean", {"sts12.test": {"spearman": 1.0}, "trec": {"accuracy": 2.0}},
         "trec.accuracy"),
        ("retrieval.mean", {"bbc_news.all": {"recall@5": 1.0}}, "bbc_news.all.recall@5"),
    ],
)  # fmt: skip
def test_the_mean_of_a_suite_is_that_of_all_its_sets_or_of_the_one_there(
    wanted: str, results: dict[str, Any], name: str
) -> None:
    found = find_shown(wanted, flat_scores(results), results)
    assert found is not None and found.name == name


def test_what_was_not_measured_is_not_found() -> None:
    assert find_shown("sickr.dev", flat_scores(RESULTS), RESULTS) is None
    assert find_shown("mean(stsb.dev, sickr.dev)", flat_scores(RESULTS), RESULTS) is None


def test_numbers_at_paths() -> None:
    output = {"a.b": {"c": [{"d": 3}]}, "x": 2, "flag": True, "list": [1]}
    assert at(output, "a.b.c.0.d") == 3
    assert at(output, "a.c") is None and at(output, "a.b.c.7") is None
    assert dict(numbers_of(output, {})) == {"x": 2.0}
    assert dict(numbers_of(output, {"d": "a.b.c.0.d", "none": "q"})) == {"d": 3.0}


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    texts = tmp_path / "texts.txt"
    texts.write_text("".join(f"the {n} of them\n" for n in range(40)), encoding="utf-8")
    file = tmp_path / "mine.toml"
    file.write_text(STUDY, encoding="utf-8")
    return plan_study(read_study(file), Wish(inputs=Inputs(data={"": [str(texts)]}, dev=["none"])))


@pytest.fixture
def folder(plan: Plan, tmp_path: Path) -> StudyFolder:
    """Runs as they lie when they are finished; the point 0.2 is worse, 0.1 is like 0.05."""
    made = StudyFolder(tmp_path / "studies")
    rng = np.random.default_rng(0)
    gold = rng.uniform(0, 5, 300)
    noise = {0.05: 1.0, 0.1: 1.0, 0.2: 4.0}
    for cell in plan.cells:
        key, run = cell.run.key, made.run(cell.run.key)
        run.mkdir(parents=True)
        result = {"steps": 5, "step": 5, "seconds": 2.5, "chosen_by": "own.dev.spearman",
                  "scores": {"own.dev.spearman": 50.0 + cell.seed}}  # fmt: skip
        (run / "result.json").write_text(json.dumps(result))
        (run / "run.toml").write_text('[versions]\ntorch = "2"\n[run]\nprecision = "fp32"\n')
        made.beside(key, "facts.json").write_text('{"commit": "abc", "machine": "here"}')
        made.scores(key, "s").parent.mkdir()
        cosine = gold + rng.normal(0, noise[cell.point.settings["loss.infonce.temperature"]], 300)
        from scipy.stats import spearmanr

        spearman = round(100 * float(spearmanr(gold, cosine).statistic), 4)
        results = {"results": {"a.test": {"spearman": spearman, "pairs": 300}}, "encoder": "mean"}
        made.scores(key, "s").write_text(json.dumps(results))
        lines = [f"a.test\t{g}\t{c:.6f}\t\tx\ty" for g, c in zip(gold, cosine, strict=True)]
        head = "set\tgold\tcosine\tsubset\tsentence1\tsentence2"
        made.pairs(key, "s").write_text("\n".join([head, *lines]) + "\n")
    return made


def test_a_row_has_all_that_a_table_needs(plan: Plan, folder: StudyFolder, tmp_path: Path) -> None:
    rows = [row.as_dict("mine") for row in rows_of(plan, folder, SCORING)]
    write_rows(rows, tmp_path / "out", "settings")
    table = pyarrow.parquet.read_table(tmp_path / "out" / "results.parquet")
    assert table.num_rows == 9
    first = table.to_pylist()[0]
    expected = {
        "study": "mine", "point": "0.05", "seed": 1, "status": "done", "commit": "abc",
        "machine": "here", "precision": "fp32", "steps": 5, "axis:temperature": "0.05",
        "column:half": 1, "option:loss.infonce.temperature": "0.05", "option:train.seed": "1",
        "score:own.dev.spearman": 51.0, "scored_by": "cse eval --pairs a.tsv", "setting": "mean",
    }  # fmt: skip
    assert {name: first[name] for name in expected} == expected
    assert pyarrow.csv.read_csv(tmp_path / "out" / "results.csv").num_rows == 9
    assert len(read_rows(tmp_path / "out", "settings")) == 9
    assert read_rows(tmp_path / "out", "others") == []


def test_rows_of_other_points_and_seeds_stay() -> None:
    before = [{"number": 1, "seed": 1, "x": 0}, {"number": 2, "seed": 1}]
    rows = [{"number": 1, "seed": 1, "x": 1}, {"number": 1, "seed": 2}]
    found = merged(rows, before)
    assert [(row["number"], row["seed"]) for row in found] == [(1, 1), (1, 2), (2, 1)]
    assert found[0]["x"] == 1


def test_the_table_says_what_is_shown_and_what_is_not(plan: Plan, folder: StudyFolder) -> None:
    rows = rows_of(plan, folder, SCORING)
    tables = tables_of(plan.definition, plan.points, rows, folder, SCORING)
    base, near, far = tables["a.test"]
    assert (base.words, near.words, far.words) == ("baseline", NOT_SHOWN, "lower")
    assert (base.seeds, base.paper, far.paper) == (3, 76.4, None)
    assert base.mean is not None and base.deviation is not None
    assert far.difference is not None and far.difference.items == 300
    assert far.p is not None and near.p is not None and far.p < 0.05 <= near.p
    assert far.p >= far.difference.p
    dev = tables["dev"]
    assert [line.score for line in dev] == ["own.dev.spearman"] * 3
    assert [line.paper for line in dev] == [None] * 3
    assert dev[1].words == NOT_SHOWN, "three equal seeds differ by nothing"
    again = tables_of(plan.definition, plan.points, rows, folder, SCORING)
    assert again == tables, "the draws are kept, and are the same"
    large = tables_of(plan.definition, plan.points, rows, folder, SCORING, "large")
    assert [line.paper for line in large["a.test"]] == [80, 81, 82]


def test_points_of_the_same_runs_are_compared_once(plan: Plan, folder: StudyFolder) -> None:
    """As with ``--steps``, where they differ in their steps alone."""
    cells = [cell for cell in plan.cells if cell.point.number < 3]
    cells += [replace(cell, point=plan.points[2]) for cell in cells if cell.point.number == 2]
    both = replace(plan, cells=tuple(cells))
    lines = tables_of(plan.definition, plan.points, rows_of(both, folder, SCORING), folder, SCORING)
    base, one, other = lines["a.test"]
    assert other.words == f"the same runs as {one.label}" and other.difference is None
    assert other.mean == one.mean and one.difference is not None
    assert one.p == one.difference.p, "one comparison, nothing to correct"
    assert "for 1 comparison" in caption([base, one, other], plan.definition)


def test_another_score_says_what_it_stands_in_for(plan: Plan, folder: StudyFolder) -> None:
    study = plan.definition.study
    scores = study.scores.model_copy(update={"shown": ["nix.accuracy"]})
    definition = replace(plan.definition, study=study.model_copy(update={"scores": scores}))
    rows = rows_of(plan, folder, SCORING)
    lines = tables_of(definition, plan.points, rows, folder, SCORING)["nix.accuracy"]
    assert lines[0].score == "a.test.spearman"
    said = caption(lines, definition)
    assert "nix.accuracy was not measured, this stands in for it" in said


def test_documents_and_texts_are_drawn_too(plan: Plan, folder: StudyFolder) -> None:
    rng = np.random.default_rng(1)
    for cell in plan.cells:
        key, right = cell.run.key, cell.point.settings["loss.infonce.temperature"] < 0.2
        ranks = rng.integers(1, 8 if right else 40, 200)
        hits = rng.random(100) < (0.9 if right else 0.5)
        lines = ["set\titem\trank\tright"]
        lines += [f"news.all\t{n}\t{rank}\t" for n, rank in enumerate(ranks, 1)]
        lines += [f"trec\t{n}\t\t{int(hit)}" for n, hit in enumerate(hits, 1)]
        folder.items(key, "s").write_text("\n".join(lines) + "\n")
        said = json.loads(folder.scores(key, "s").read_text())
        said["results"] |= {
            "news.all": {"recall@5": 100 * float((ranks <= 5).mean())},
            "trec": {"accuracy": 100 * float(hits.mean())},
        }
        folder.scores(key, "s").write_text(json.dumps(said))
    rows = rows_of(plan, folder, SCORING)
    study, shown = plan.definition.study, ["*.recall@5", "trec", "mean(trec, *.recall@5)"]
    scores = study.scores.model_copy(update={"shown": [*shown, "*.recall@1"]})
    definition = replace(plan.definition, study=study.model_copy(update={"scores": scores}))
    found = tables_of(definition, plan.points, rows, folder, SCORING)
    assert list(found) == shown, "what was not measured has no table"
    for lines, count in zip(list(found.values())[:2], (200, 100), strict=True):
        _, near, far = lines
        assert near.words == NOT_SHOWN and far.words == "lower"
        assert far.difference is not None and far.difference.items == count
        assert far.difference.low < far.difference.value < far.difference.high
    assert "draws of documents, Student's t over seeds" in caption(found["*.recall@5"], definition)
    assert "draws of labelled texts, Student's t" in caption(found["trec"], definition)
    mixed = found["mean(trec, *.recall@5)"][2]
    assert mixed.difference is not None and mixed.difference.items == 0, "of two kinds: seeds tell"


def test_a_run_that_is_missing_or_failed_has_its_row(plan: Plan, folder: StudyFolder) -> None:
    first, second = plan.cells[0].run.key, plan.cells[1].run.key
    (folder.run(first) / "result.json").unlink()
    (folder.run(second) / "result.json").unlink()
    folder.beside(second, "failed.json").write_text('{"line": "too hot"}')
    rows = rows_of(plan, folder, SCORING)
    assert [row.status for row in rows[:3]] == ["begun", "failed", "done"]
    assert rows[1].facts["line"] == "too hot"
    lines = tables_of(plan.definition, plan.points, rows, folder, SCORING)["a.test"]
    assert lines[0].seeds == 1 and lines[0].deviation is None
    assert lines[1].difference is not None and lines[1].difference.seeds == 1
    assert lines[2].words == "lower with this seed"
    claim = Claim(says="0.1 above 0.2", better="0.1", than="0.2")
    study = plan.definition.study.model_copy(update={"claims": [claim]})
    definition = replace(plan.definition, study=study)
    for kept, words in ((rows, "holds"), ([r for r in rows if r.seed == 3], "cannot be decided")):
        found = verdicts_of(definition, plan.points, kept, folder, SCORING)
        assert [each.words for each in found] == [words]
