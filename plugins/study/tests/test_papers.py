"""The commands and studies of this distribution, and the studies of the papers: all compose."""

from collections import defaultdict
from pathlib import Path

import pytest
from cse_study.measures import settings
from cse_study.plugin import cse_studies
from cse_testkit import PluginSuite

from tests.fixtures.studies import definition, made_small, names, planned, plugins

COUNTS = {"hicl": 21, "iscse": 14, "infocse": 13, "ifcl": 11, "mocose": 23}
MADE: defaultdict[str, set[str]] = defaultdict(set)
"""The kinds of runs that were made of each paper."""


class TestPlugin(PluginSuite):
    distribution = "cse-study"


def test_hook_cse_studies() -> None:
    studies = plugins().studies
    for spec in cse_studies():
        assert studies[spec.name][1].distribution == "cse-study"
        plan = planned(spec.name, seeds=1)
        points = {point.number for point in plan.definition.points}
        assert {cell.point.number for cell in plan.cells} == points
        assert len(plan.runs) >= len(plan.cells) - 3


@pytest.mark.parametrize("paper", COUNTS)
def test_every_study_is_planned(paper: str) -> None:
    assert len(names(paper)) == COUNTS[paper]
    for name in names(paper):
        plan = planned(name, seeds=1)
        study = plan.definition.study
        assert plan.points and plan.cells, name
        missing = study.paper.missing
        assert plan.definition.printed or missing, name
        assert ":" in missing or not missing, f"{name}: the reason"
        assert study.source and study.seeds != [1], f"{name}: the paper's seeds, or 42"


@pytest.mark.parametrize("base", ["", "-esimcse", "-sncse"])
def test_large_encoders_choose_alpha_at_a_lower_rate(
    base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cse.plans.Installed", lambda left_out: plugins())  # texts are read once
    (file,) = {
        value
        for value in definition("hicl/table-13").study.axes[0].values["recipe"]
        if Path(value).name == f"stage-1{base}.toml"
    }
    rates = {
        size: settings(
            {"recipe": file, "family": "roberta", "hidden": size, "options": ["train.lr"]}
        )
        for size in (768, 1024)
    }
    assert rates == {768: {"train.lr": 1e-5}, 1024: {"train.lr": 5e-6}}


def test_numbers_of_a_study_with_trials_are_of_its_methods() -> None:
    found = definition("hicl/table-1")
    assert (len(found.points), len(found.labels), len(found.printed)) == (24, 6, 4)
    for encoder, mean in {"": 78.6, "roberta-large": 81.79}.items():
        cell = found.cell(encoder, "SNCSE + HiCL", "sts.mean")
        assert cell is not None and cell.value == mean


def test_is_cse_is_compared_with_dclr_that_lacks_the_smoothing_alone() -> None:
    for name in ("iscse/table-1", "cse/equal-footing"):
        plan = planned(name, seeds=1)
        (claim,) = (each for each in plan.definition.study.claims if "over DCLR" in each.says)
        recipes = {cell.point.labels["method"]: cell.run.recipe for cell in plan.cells}
        own, base = ({**recipes[label], "name": ""} for label in (claim.better, claim.than))
        assert [each["name"] for each in own.pop("positives")] == ["knn-smoothing"]
        assert "positives" not in base
        own["loss"] = [each for each in own["loss"] if each.get("target") != "knn-smoothing"]
        assert own == base, name


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("studies")


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for paper in COUNTS for name in names(paper)])
def test_its_runs_are_made(name: str, folder: Path) -> None:
    paper, _, _ = name.partition("/")
    (folder / paper).mkdir(exist_ok=True)
    made_small(name, folder / paper, MADE[paper])
