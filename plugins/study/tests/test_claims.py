"""Claims that the runs of a study decide, and the page of Markdown."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cse_study.definition.reading import Definition, find_study, read_study
from cse_study.execution.folder import StudyFolder
from cse_study.planning.plan import Plan, Wish, plan_study
from cse_study.results.claims import verdicts_of
from cse_study.results.layout import claims_table, score_tables
from cse_study.results.markdown import page_of
from cse_study.results.rows import rows_of
from cse_study.results.table import tables_of

from cse_cli.plugins.installed import Installed
from cse_core.errors import CseError

STUDY = """
summary = "Three methods"
seeds = [1, 2, 3, 4, 5]
baseline = "simcse"

[settings]
dev = "@dev"
"train.max_steps" = 2
"data.limit" = 64

[[axes]]
name = "method"
values = { recipe = ["simcse", "esimcse", "sncse"] }

[scores]
shown = "dev"

[[claims]]
says = "ESimCSE above SimCSE"
source = "its Table 3"
better = "esimcse"
than = "simcse"

[[claims]]
says = "SimCSE above ESimCSE"
better = "simcse"
than = "esimcse"

[[claims]]
says = "SNCSE above SimCSE"
better = "sncse"
than = "simcse"
"""


def made(tmp_path: Path) -> tuple[Definition, Plan, StudyFolder]:
    """Return a study whose runs have dev scores: esimcse two points above, sncse by chance."""
    file = tmp_path / "study.toml"
    file.write_text(STUDY)
    definition = find_study(str(file), Installed())
    folder = StudyFolder(tmp_path)
    plan = plan_study(definition, Wish())
    noise = np.random.default_rng(0)
    for cell in plan.cells:
        above = {"simcse": 0.0, "esimcse": 2.0, "sncse": 0.0}[cell.point.label]
        place = folder.run(cell.run.key)
        place.mkdir(parents=True)
        score = 60 + above + 0.2 * float(noise.normal())
        result = {"chosen_by": "dev.spearman", "scores": {"dev.spearman": score}, "seconds": 36}
        (place / "result.json").write_text(json.dumps(result))
        facts = {"commit": "abc", "processor": "Some CPU, avx2"}
        folder.beside(cell.run.key, "facts.json").write_text(json.dumps(facts))
    return definition, plan, folder


def test_claims_hold_or_not_or_stay_open(tmp_path: Path) -> None:
    definition, plan, folder = made(tmp_path)
    rows = rows_of(plan, folder, None)
    verdicts = verdicts_of(definition, plan.shown, rows, folder, None)
    assert [each.words for each in verdicts] == ["holds", "does not hold", "cannot be decided"]
    assert verdicts[0].difference is not None and verdicts[0].difference.seeds == 5
    assert verdicts[0].difference.value == pytest.approx(2, abs=0.3)
    tables = score_tables(definition, tables_of(definition, plan.shown, rows, folder, None))
    claims = claims_table(verdicts)
    assert claims is not None
    page = page_of(definition, [*tables, claims], rows, "cse x")
    assert "Written by `cse x`." in page
    assert "| ESimCSE above SimCSE (its Table 3) | dev.spearman | +" in page
    assert "| sncse | 5 | " in page and "no difference shown" in page
    said = "15 rows of finished runs, 0.1 hours of training; model: starter; commit: abc; processor"
    assert said in page


def test_a_page_names_files_without_their_places(tmp_path: Path) -> None:
    definition, plan, folder = made(tmp_path)
    row = rows_of(plan, folder, None)[0]
    scored_by = "cse eval --pairs /home/me/data/pairs.tsv --precision bf16"
    row = replace(row, facts={**row.facts, "scored_by": scored_by})
    page = page_of(definition, [], [row], "cse x")
    assert "scored by: cse eval --pairs pairs.tsv --precision bf16" in page


def test_claims_without_runs_stay_open(tmp_path: Path) -> None:
    definition, plan, folder = made(tmp_path)
    (folder.run(plan.cells[0].run.key) / "result.json").unlink()
    for cell in plan.cells:
        (folder.run(cell.run.key) / "result.json").unlink(missing_ok=True)
    verdicts = verdicts_of(definition, plan.shown, rows_of(plan, folder, None), folder, None)
    assert {each.words for each in verdicts} == {"cannot be decided"}


def test_no_other_score_stands_in_for_a_claim_s(tmp_path: Path) -> None:
    definition, plan, folder = made(tmp_path)
    scores = definition.study.scores.model_copy(update={"shown": ["dev", "*.recall@5"]})
    claims = [
        each.model_copy(update={"score": "*.recall@5"}) if at == 0 else each
        for at, each in enumerate(definition.study.claims)
    ]
    study = definition.study.model_copy(update={"scores": scores, "claims": claims})
    definition, rows = replace(definition, study=study), rows_of(plan, folder, None)
    first, second, _ = verdicts_of(definition, plan.shown, rows, folder, None)
    assert (first.words, first.p, first.score) == ("cannot be decided", None, "")
    assert (second.words, second.score) == ("does not hold", "dev.spearman")


def test_p_is_of_all_claims_whatever_was_run(tmp_path: Path) -> None:
    definition, plan, folder = made(tmp_path)
    rows = rows_of(plan, folder, None)
    whole = verdicts_of(definition, plan.shown, rows, folder, None)[2]
    part = [row for row in rows if row.point.label != "esimcse"]
    alone = verdicts_of(definition, plan.shown, part, folder, None)[2]
    assert whole.difference == alone.difference and alone.difference is not None
    assert alone.p == pytest.approx(min(1.0, 3 * alone.difference.p))


def test_a_claim_names_a_shown_score(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text(STUDY + 'score = "*.recal@5"\n')
    with pytest.raises(CseError, match="claims.2.score: scores.shown lacks it"):
        read_study(file)


def test_a_claim_names_points(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text(STUDY.replace('than = "esimcse"', 'than = "esimce"'))
    with pytest.raises(CseError, match="claims.1.than: no point has this label"):
        read_study(file)
