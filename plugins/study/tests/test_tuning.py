"""Trials of an axis: one place of it is kept for each place of the others, by the dev score."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cse_study.definition.reading import find_study
from cse_study.execution.folder import StudyFolder
from cse_study.planning.plan import Plan, Wish, plan_study
from cse_study.results.rows import rows_of
from cse_study.results.table import tables_of

from cse_cli.plugins.installed import Installed
from cse_core.errors import CseError
from tests.fixtures.command_line import Cse

STUDY = """
summary = "Two methods, each at the best of two learning rates"
seeds = [1, 2, 3]

[settings]
dev = "@dev"
"train.max_steps" = 2
"data.limit" = 64

[[axes]]
name = "method"
values = { recipe = ["simcse", "esimcse"] }

[[axes]]
name = "lr"
values = { "train.lr" = [1e-5, 1e-4] }

[tune]
over = ["lr"]
"""


def planned(file: Path, folder: Path) -> Plan:
    definition = find_study(str(file), Installed())
    return plan_study(definition, Wish(), folder=StudyFolder(folder))


def end(plan: Plan, folder: Path, number: int, score: float | None) -> None:
    """Write the result of a point's runs, or that they failed."""
    for cell in plan.cells:
        if cell.point.number == number:
            place = folder / "runs" / cell.run.key
            place.mkdir(parents=True, exist_ok=True)
            if score is None:
                (place.parent / f"{cell.run.key}.failed.json").write_text("{}")
            else:
                result = {"chosen_by": "mean", "score": score, "scores": {"a.dev.spearman": score}}
                (place / "result.json").write_text(json.dumps(result))


@pytest.fixture
def study(tmp_path: Path) -> Path:
    file = tmp_path / "study.toml"
    file.write_text(STUDY)
    return file


def test_all_seeds_follow_for_the_best_trial_of_each_method(study: Path, tmp_path: Path) -> None:
    plan = planned(study, tmp_path)
    assert [(cell.point.number, cell.seed) for cell in plan.cells] == [
        (1, 1), (2, 1), (3, 1), (4, 1),
    ]  # fmt: skip
    assert (plan.undecided, plan.shown, plan.scored) == (2, plan.points, frozenset())
    for number, score in ((1, 60.0), (2, 61.0), (3, 59.0)):
        end(plan, tmp_path, number, score)
    plan = planned(study, tmp_path)
    assert (plan.kept, plan.undecided) == ({2}, 1)
    end(plan, tmp_path, 4, None)
    plan = planned(study, tmp_path)
    assert (plan.kept, plan.undecided) == ({2, 3}, 0)
    assert [point.label for point in plan.shown] == ["simcse, 0.0001", "esimcse, 1e-05"]
    seeds = {n: [c.seed for c in plan.cells if c.point.number == n] for n in (1, 2, 3, 4)}
    assert seeds == {1: [1], 2: [1, 2, 3], 3: [1, 2, 3], 4: [1]}
    assert plan.scored == {c.run.key for c in plan.cells if c.point.number in (2, 3)}


def test_a_model_without_training_has_no_tuned_setting(study: Path, tmp_path: Path) -> None:
    study.write_text(STUDY.replace('"simcse", "esimcse"', '"@none", "simcse"'))
    plan, folder = planned(study, tmp_path), StudyFolder(tmp_path)
    rows = rows_of(plan, folder, None)
    for seeds in ([1], [1, 2, 3]):
        kept = [row for row in rows if row.seed in seeds]
        tables = tables_of(plan.definition, plan.points, kept, folder, None)
        labels = [line.label for line in next(iter(tables.values()))]
        assert labels == ["none", "none", "simcse, 1e-05", "simcse, 0.0001"]


def test_trials_that_all_failed_choose_nothing(study: Path, tmp_path: Path) -> None:
    plan = planned(study, tmp_path)
    for number in (1, 2):
        end(plan, tmp_path, number, None)
    assert planned(study, tmp_path).undecided == 2


@pytest.mark.parametrize("dev", ['dev = "none"', 'data = "FOLDER/own.txt"'])
def test_trials_need_a_dev_set(study: Path, tmp_path: Path, dev: str) -> None:
    study.write_text(STUDY.replace('dev = "@dev"', dev.replace("FOLDER", str(tmp_path))))
    (tmp_path / "own.txt").write_text("".join(f"the {n} of them are here\n" for n in range(64)))
    with pytest.raises(CseError, match="no dev set"):
        planned(study, tmp_path)


def test_an_axis_that_is_not_there_is_refused(study: Path, tmp_path: Path) -> None:
    study.write_text(STUDY.replace('["lr"]', '["rate"]'))
    with pytest.raises(CseError, match="tune.over: rate is not an axis; axes are method, lr"):
        planned(study, tmp_path)


@pytest.mark.slow
def test_trials_run_first_and_the_table_has_what_they_chose(
    study: Path, tmp_path: Path, cse: Cse
) -> None:
    words = [str(study), "--out", str(tmp_path / "studies")]
    plan = cse("study", *words, "--dry-run").out
    assert "trials of lr choose by the dev score; then 4 more runs follow" in plan
    found = json.loads(cse("study", *words, "--json").out)
    (lines,) = found["tables"].values()
    assert [line["seeds"] for line in lines] == [3, 3]
    assert len(found["rows"]) == 8
    chosen = {line["number"] for line in lines}
    scored = {row["number"] for row in found["rows"] if "starter.test.spearman" in row["scores"]}
    assert scored == chosen
    assert {row["status"] for row in found["rows"]} == {"done"}
