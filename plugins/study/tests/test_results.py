"""Rows of runs, which score a table shows, what it says of differences, and claims."""

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cse_study.definition.reading import read_study
from cse_study.definition.schema import Claim, Figure, PaperNumbers
from cse_study.execution.folder import StudyFolder, read_table, write_json
from cse_study.execution.jobs import Scoring
from cse_study.pages.latex import Spread, write_latex
from cse_study.pages.study_page import study_page
from cse_study.planning.composing import Inputs, Wish
from cse_study.planning.plan import Plan
from cse_study.results import bootstrap
from cse_study.results.beside import _beside, beside_paper
from cse_study.results.rows import at, find_shown, flat_scores, numbers_of, rows_of, write_rows
from cse_study.results.table import NO_SEED, NOT_SHOWN, SAME_OF_ALL, Results
from scipy.stats import spearmanr

from cse import compared, corrected, draws_of, holm
from cse.bootstrap import SEED
from tests.fixtures.studies import plan_of

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
SCORING = Scoring("s", ("--pairs", "/home/me/a.tsv"), True)


def test_a_shown_score_is_found() -> None:
    scores = {"own.dev.spearman": 50.5, **flat_scores(RESULTS)}
    table: dict[str, tuple[str, float, tuple[str, ...]] | None] = {
        "sts.mean": ("mean-of-2.spearman", 65.5, ("sts12.test", "stsb.test")),
        "transfer.mean": ("transfer.mean-of-2.accuracy", 85.5, ("MR", "trec")),
        "*.recall@5": ("news.all.recall@5", 40.5, ("news.all",)),
        "stsb.dev": ("stsb.dev.spearman", 72.5, ("stsb.dev",)),
        "*.mutual-information.task": ("stsb.dev.mutual-information.task", 4.25, ()),
        "sts12.test.alignment": ("sts12.test.alignment", 0.4, ()),
        "dev": ("own.dev.spearman", 50.5, ("@dev",)),
        "dev.spearman": ("own.dev.spearman", 50.5, ("@dev",)),
        "mean(sts12.test, stsb.dev)": (
            "mean(sts12.test.spearman, stsb.dev.spearman)", 66.5, ("sts12.test", "stsb.dev")
        ),
        "sickr.dev": None,
        "dev.mutual-information.task": ("stsb.dev.mutual-information.task", 4.25, ()),
        "mean(stsb.dev, sickr.dev)": None,
    }  # fmt: skip
    for wanted, expected in table.items():
        found = find_shown(wanted, scores, RESULTS, "own.dev.spearman")
        assert (found and (found.name, found.value, found.sets)) == expected, wanted
    one = {"spearman": 1.0}
    means: list[tuple[str, dict[str, Any], str | None]] = [
        ("sts.mean", {"sts12.test": one, "mean": {"spearman": 2.0}}, "mean.spearman"),
        ("sts.mean", {"stsb.test": one}, "stsb.test.spearman"),
        ("sts.mean", {"starter.test": one}, None),
        ("sts.mean", {"stsb.test": one, "mean-of-2": {"spearman": None}}, None),
        ("transfer.mean", {"mr": {"accuracy": 1.0}, "transfer.mean": {"accuracy": 2.0}},
         "transfer.mean.accuracy"),
        ("transfer.mean", {"sts12.test": one, "trec": {"accuracy": 2.0}}, "trec.accuracy"),
        ("retrieval.mean", {"bbc_news.all": {"recall@5": 1.0}}, "bbc_news.all.recall@5"),
    ]  # fmt: skip
    for wanted, results, name in means:
        found = find_shown(wanted, flat_scores(results), results)
        assert (found and found.name) == name


def test_numbers_at_paths() -> None:
    output = {"a.b": {"c": [{"d": 3}]}, "x": 2, "flag": True, "list": [1]}
    assert at(output, "a.b.c.0.d") == 3
    assert at(output, "a.c") is None and at(output, "a.b.c.7") is None
    assert numbers_of(output, {}) == {"x": 2.0}
    assert numbers_of(output, {"d": "a.b.c.0.d", "none": "q"}) == {"d": 3.0}


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    folder = tmp_path_factory.mktemp("plan")
    (folder / "texts.txt").write_text("".join(f"the {n} of them\n" for n in range(40)))
    (folder / "mine.toml").write_text(STUDY, encoding="utf-8")
    inputs = Inputs(data={"": [str(folder / "texts.txt")]}, dev=["none"])
    return plan_of(read_study(folder / "mine.toml"), Wish(inputs=inputs))


@pytest.fixture
def folder(plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StudyFolder:
    """Runs as they lie when they are finished; the point 0.2 is worse, 0.1 is like 0.05."""
    monkeypatch.setattr(bootstrap, "DRAWS", 1000)
    made = StudyFolder(tmp_path / "studies")
    rng = np.random.default_rng(0)
    gold = rng.uniform(0, 5, 300)
    for cell in plan.cells:
        key, worse = cell.run.key, cell.point.number == 3
        cosine = gold + rng.normal(0, 4.0 if worse else 1.0, 300)
        spearman = round(100 * float(spearmanr(gold, cosine).statistic), 4)
        hits = rng.random(100) < (0.5 if worse else 0.9)
        ranks = rng.integers(1, 40 if worse else 8, 200)
        dev = {"own.dev.spearman": 50.0 + cell.seed}
        write_json(made.run(key) / "result.json", {
            "steps": 5, "step": 5, "seconds": 36, "chosen_by": "own.dev.spearman", "scores": dev
        })  # fmt: skip
        (made.run(key) / "run.toml").write_text('[versions]\na = "2"\n[run]\nprecision = "fp32"\n')
        write_json(made.beside(key, "facts.json"), {
            "commit": "abc", "date": "2026-01-02", "machine": "here",
        })  # fmt: skip
        warned = f"warning: /a/runs/{key}: /b/MiniLM froze\n" if worse else ""
        made.beside(key, "log").write_text(f"{warned}step 5\n")
        results = {"a.test": {"spearman": spearman, "pairs": 300},
                   "news.all": {"recall@5": 100 * float((ranks <= 5).mean())},
                   "trec": {"accuracy": 100 * float(hits.mean())}}  # fmt: skip
        write_json(made.scores(key, "s.json"), {"results": results, "encoder": "mean"})
        lines = ["set\tgold\tcosine\tsubset\tsentence1\tsentence2"]
        lines += [f"a.test\t{g}\t{c:.6f}\t\tx\ty" for g, c in zip(gold, cosine, strict=True)]
        made.scores(key, "s.tsv").write_text("\n".join(lines) + "\n")
        lines = ["set\titem\trank\tright"]
        lines += [f"news.all\t{n}\t{rank}\t" for n, rank in enumerate(ranks, 1)]
        lines += [f"trec\t{n}\t\t{int(hit)}" for n, hit in enumerate(hits, 1)]
        made.scores(key, "s.items.tsv").write_text("\n".join(lines) + "\n")
    return made


def results_of(plan: Plan, folder: StudyFolder, variant: str = "", **changes: Any) -> Results:
    """Return results of the plan's runs, with other shown scores or claims."""
    study = plan.definition.study
    if "shown" in changes:
        changes["scores"] = study.scores.model_copy(update={"shown": changes.pop("shown")})
    definition = replace(plan.definition, study=study.model_copy(update=changes))
    rows = rows_of(plan, folder, SCORING)
    return Results(definition, plan.points, rows, folder, SCORING, variant)


def page_of(results: Results, folder: StudyFolder) -> str:
    study_page(results, "cse x").write(folder.path / "x.md")
    return (folder.path / "x.md").read_text()


def test_a_row_has_all_that_a_table_needs(plan: Plan, folder: StudyFolder, tmp_path: Path) -> None:
    rows = [row.as_dict("mine") for row in rows_of(plan, folder, SCORING)]
    write_rows(rows, tmp_path / "out" / "results.csv")
    with (tmp_path / "out" / "results.csv").open(newline="") as file:
        first, *others = csv.DictReader(file)
    assert len(others) == 8
    expected = {
        "study": "mine", "point": "0.05", "seed": "1", "status": "done", "commit": "abc",
        "machine": "here", "precision": "fp32", "steps": "5", "axis:temperature": "0.05",
        "column:half": "1", "option:loss.infonce.temperature": "0.05", "option:train.seed": "1",
        "score:own.dev.spearman": "51.0", "scored_by": "cse eval --pairs /home/me/a.tsv",
        "setting": "mean",
    }  # fmt: skip
    assert {name: first[name] for name in expected} == expected


def test_the_table_says_what_is_shown_and_what_is_not(plan: Plan, folder: StudyFolder) -> None:
    results = results_of(plan, folder)
    base, near, far = results.tables["a.test"]
    assert (base.words, near.words, far.words) == ("baseline", NOT_SHOWN, "lower")
    assert (base.seeds, base.paper, far.paper) == (3, 76.4, None)
    assert base.mean is not None and base.deviation is not None
    assert far.difference is not None and far.difference.items == 300
    assert near.difference is not None and far.difference.p < 0.05 <= near.difference.p
    assert far.difference.high < 0 and near.difference.low <= 0 <= near.difference.high
    dev = results.tables["dev"]
    assert [(line.score, line.paper) for line in dev] == [("own.dev.spearman", None)] * 3
    assert dev[1].words == SAME_OF_ALL, "of another seed nothing is known"
    assert results_of(plan, folder).tables == results.tables, "the draws are kept"
    large = results_of(plan, folder, "large")
    assert [line.paper for line in large.tables["a.test"]] == [80, 81, 82]
    page = page_of(results, folder)
    for words in ("Written by `cse x`.", "| 0.05 | ", "; **",
                  "9 rows of finished runs, 5.4 minutes of training; model: starter; steps: 5; "
                  "commit: abc; date: 2026-01-02; precision: fp32; "
                  "scored by: cse eval --pairs a.tsv"):  # fmt: skip
        assert words in page
    assert page.count("froze") == 1 and "\n\nWarning (0.2): MiniLM froze\n\n" in page


def test_points_of_others_change_no_number_of_the_study(plan: Plan, folder: StudyFolder) -> None:
    results = results_of(plan, folder)
    two = replace(results.definition, points=plan.points[:2])
    alone = replace(results, definition=two, points=plan.points[:2])
    beside = replace(results, definition=two, added=("0.2 (from b.gz; x = 1; not repeated)",))
    assert (len(beside.family), len(beside.outside)) == (2, 2) and not alone.outside
    for name, lines in beside.tables.items():
        assert lines[:2] == alone.tables[name]
        assert lines[2].label == "0.2 (added)"
    added, whole = beside.tables["a.test"][2], results.tables["a.test"][2]
    assert added.difference == whole.difference, "corrected for all four"
    page = page_of(beside, folder)
    assert "for the 2 comparisons of the study's file;" in page
    assert (
        "chosen by others: 0.2 (from b.gz; x = 1; not repeated). Their p and intervals are "
        "corrected for the comparisons of the study's file (2) and their own (2); " in page
    )


def test_dev_scores_are_compared_as_test_scores_are(plan: Plan, folder: StudyFolder) -> None:
    for cell in plan.cells:
        test = folder.scores(cell.run.key, "s.tsv").read_text()
        folder.scores(cell.run.key, "s.dev.tsv").write_text(test.replace("a.test", "own"))
        value = read_table(folder.scores(cell.run.key, "s.json"))["results"]["a.test"]["spearman"]
        result = {"chosen_by": "own.dev.spearman", "scores": {"own.dev.spearman": value}}
        write_json(folder.run(cell.run.key) / "result.json", result)
    tables = results_of(plan, folder).tables
    for dev, test in zip(tables["dev"], tables["a.test"], strict=True):
        assert dev.words == test.words
        one, other = dev.difference, test.difference  # their ends differ by the rank of p
        assert (one and (one.value, one.p, one.items)) == (
            other and (other.value, other.p, other.items)
        )
        assert dev.interval == test.interval is not None
    assert "paired draws of dev pairs" in results_of(plan, folder).caption("dev")


def test_the_paper_stands_beside_what_was_run(plan: Plan, folder: StudyFolder) -> None:
    claims = [Claim(says="0.1 above 0.05", better="0.1", than="0.05"),
              Claim(says="0.1 below 0.05", better="0.1", than="0.05", lower=True)]  # fmt: skip
    results = results_of(plan, folder, claims=claims)
    beside, small, large = beside_paper(results)
    near, far = beside.rows
    assert [row[0] for row in beside.rows] == ["0.05", "0.1"], "0.2 has no number"
    for row, paper in ((near, 76.4), (far, 75.92)):
        gap, low, high = (float(part.strip("[],")) for part in row[-1].split())
        assert gap == pytest.approx(float(row[3].split()[0]) - paper, abs=0.011)
        assert low < gap < high and row[2] == f"{paper:.2f}" and row[4] == "3"
    assert [row[-1] for row in small.rows] == ["seeds: 3", "seeds: 3", "seeds: 3"]
    assert small.rows[2][1] == "" and "here" not in large.heads
    few = replace(results, rows=[row for row in results.rows if row.point.number > 1])
    assert beside_paper(few)[1].rows[0][-1] == "not run"
    (claimed,) = results._claims()
    assert "contradict '0.1 above 0.05': -0.48" in claimed.caption
    assert "contradict '0.1 below 0.05': large +1.00" in claimed.caption
    page = page_of(results, folder)
    assert "## Beside the paper" in page and "| seeds: 3 |" in page


def test_a_table_for_a_paper_has_the_tests_of_the_page(plan: Plan, folder: StudyFolder) -> None:
    figure = Figure(type="curve", x="temperature")
    results = results_of(
        plan, folder, figures=[figure], summary="50 % & more", paper=PaperNumbers()
    )
    file, lines = folder.path / "x.tex", results.tables["a.test"]
    pictures = study_page(results, "cse x").pictures

    def cells(spread: Spread) -> list[list[str]]:
        write_latex(results, pictures, file, "cse x", spread)
        text = file.read_text()
        assert text.startswith("% cse x\n\\begin{table}") and r"\caption{50 \% \& more; " in text
        assert r"& a.test.spearman & own.dev.spearman \\" in text and text.count("rule\n") == 3
        rows = text.partition("midrule\n")[2].partition("\n\\bottomrule")[0]
        return [row.removesuffix(r" \\").split(" & ") for row in rows.split("\n")]

    bold = [f"{line.mean:.2f}" for line in lines]
    bold[2] = rf"\textbf{{{bold[2]}}}"
    expected = [rf"{mean} $\pm$ {line.deviation:.2f}"
                for mean, line in zip(bold, lines, strict=True)]  # fmt: skip
    assert [row[1] for row in cells("deviation")] == expected
    assert [row[2] for row in cells("deviation")] == [r"52.00 $\pm$ 1.00"] * 3
    ends = [line.interval or (0, 0) for line in lines]
    found = cells("interval")
    assert [row[0] for row in found] == ["0.05", "0.1", "0.2"]
    expected = [f"{mean} [{low:.2f}, {high:.2f}]"
                for mean, (low, high) in zip(bold, ends, strict=True)]  # fmt: skip
    assert [row[1] for row in found] == expected
    for line, (low, high) in zip(lines, ends, strict=True):
        assert line.mean is not None and low < line.mean < high
    with file.with_suffix(".csv").open(newline="") as opened:
        rows = list(csv.DictReader(opened))
    assert len(rows) == 6 and [row["temperature"] for row in rows[:3]] == ["0.05", "0.1", "0.2"]
    assert float(rows[0]["mean"]) == lines[0].mean and rows[0]["difference"] == ""
    delta = lines[2].difference
    assert delta is not None
    assert (float(rows[2]["p"]), rows[2]["words"]) == (delta.p, "lower")
    assert (folder.path / "x-1.pdf").read_bytes() == pictures[0].pdf()
    assert pictures[0].pdf().startswith(b"%PDF")


def test_another_score_says_what_it_stands_in_for(plan: Plan, folder: StudyFolder) -> None:
    results = results_of(plan, folder, shown=["nix.spearman"])
    lines = results.tables["nix.spearman"]
    assert lines[0].score == "a.test.spearman"
    said = results.caption("nix.spearman")
    assert "nix.spearman was not measured, this stands in for it" in said


def test_documents_and_texts_are_drawn_too(plan: Plan, folder: StudyFolder) -> None:
    shown = ["*.recall@5", "trec", "mean(trec, *.recall@5)"]
    results = results_of(plan, folder, shown=[*shown, "*.recall@1"])
    found = results.tables
    assert list(found) == shown, "what was not measured has no table"
    items = {"*.recall@5": (200, "documents"), "trec": (100, "labelled texts")}
    for name, (count, kind) in items.items():
        _, near, far = found[name]
        assert near.words == NOT_SHOWN and far.words == "lower"
        assert far.difference is not None and far.difference.items == count
        assert far.difference.low < far.difference.value < far.difference.high
        said = results.caption(name)
        assert f"Student's t over seeds; 1,000 paired draws of {kind}" in said
    results = results_of(plan, folder, shown=shown, paper=PaperNumbers())
    page, far = page_of(results, folder), found["trec"][2]
    assert f"| point | {' | '.join(found[name][2].score for name in shown)} |" in page
    assert far.difference is not None and f"; **{far.difference.value:+.2f} [" in page
    assert page.count("for the 6 comparisons") == page.count("Student's t") == 1
    assert "draws of documents; " in page and "draws of labelled texts; " in page
    assert "; bold: p < 0.05, and not too small to matter" in page
    mixed = found["mean(trec, *.recall@5)"][2]
    assert mixed.difference is not None and mixed.difference.items == 0, "of two kinds: seeds tell"


def test_a_run_that_is_missing_or_failed_has_its_row(plan: Plan, folder: StudyFolder) -> None:
    first, second = plan.cells[0].run.key, plan.cells[1].run.key
    for key in (first, second):
        (folder.run(key) / "result.json").unlink()
    write_json(folder.beside(second, "failed.json"), {"line": "too hot"})
    results = results_of(plan, folder)
    assert [row.status for row in results.rows[:3]] == ["begun", "failed", "done"]
    assert results.rows[1].facts["line"] == "too hot"
    lines = results.tables["a.test"]
    assert lines[0].seeds == 1 and lines[0].deviation is None
    assert lines[1].difference is not None and lines[1].difference.seeds == 1
    assert lines[2].words == "lower with this seed"


def test_claims_hold_or_not_or_stay_open(plan: Plan, folder: StudyFolder) -> None:
    claims = [
        Claim(says="0.1 above 0.2", source="Table 3", better="0.1", than="0.2"),
        Claim(says="0.2 above 0.1", better="0.2", than="0.1"),
        Claim(says="0.1 above 0.05", better="0.1", than="0.05"),
        Claim(says="of another score", better="0.1", than="0.2", score="*.recall@1"),
        Claim(says="lower", better="0.2", than="0.1", lower=True),
    ]
    results = results_of(plan, folder, claims=claims)
    words = ["holds", "does not hold", "cannot be decided", "not measured", "holds"]
    assert [each.words for each in results.verdicts] == words
    assert results.verdicts[0].score == "a.test.spearman"
    assert (results.verdicts[3].difference, results.verdicts[3].score) == (None, "")
    assert "| 0.1 above 0.2 (Table 3) | a.test.spearman |  | +" in page_of(results, folder)
    in_paper = [each.paper for each in results.verdicts]
    assert in_paper == [None, None, pytest.approx(-0.48), None, None]
    large = results_of(plan, folder, "large", claims=claims)
    assert [each.paper for each in large.verdicts] == [-1.0, 1.0, 1.0, None, 1.0]
    few = replace(results, rows=[row for row in results.rows if row.point.number > 1])
    one, same = few.verdicts[0].difference, results.verdicts[0].difference
    assert one is not None and same is not None and one.p == same.p, "of all, run or not"
    assert few.family == results.family and len(results.family) == 6
    alone = replace(results, rows=[row for row in results.rows if row.seed == 3]).verdicts
    assert {each.words for each in alone} == {"cannot be decided", "not measured"}, "by one seed"
    assert {each.words for each in replace(results, rows=[]).verdicts} == {"not measured"}


def of(seed: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
    gold = np.random.default_rng(7).integers(0, 20, 400) / 4
    return gold, gold + np.random.default_rng(seed).normal(0, noise, 400)


def test_draws_are_paired_and_the_spearman_of_the_drawn_pairs() -> None:
    first = draws_of([of(1, 2)], 200)
    assert (first == draws_of([of(1, 2)], 200)).all()
    gold, cosine = of(1, 2)
    assert draws_of([(gold, cosine * 3 + 1)], 200) == pytest.approx(first)
    assert draws_of([(gold, cosine * 0)], 9) == pytest.approx(0)
    assert draws_of([(gold, gold)], 9) == pytest.approx(100)
    whole = 100 * spearmanr(gold, cosine).statistic
    assert abs(first.mean() - whole) < 3 * first.std()
    drawn = np.random.default_rng((SEED, 0, 400)).integers(0, 400, (200, 400))
    loop = [100 * spearmanr(gold[index], cosine[index]).statistic for index in drawn]
    assert first == pytest.approx(loop), "with mean ranks of ties, which every draw has"
    rng = np.random.default_rng(0)
    hits = [rng.random(40) < 0.3, rng.random(70) < 0.8]
    shares = draws_of([(each.astype(float),) for each in hits], 5000)
    expected = [each.mean() for each in hits]
    assert shares.mean() == pytest.approx(100 * np.mean(expected), abs=0.3)
    error = np.sqrt(sum(p * (1 - p) / len(h) for p, h in zip(expected, hits, strict=True))) / 2
    assert shares.std() == pytest.approx(100 * error, rel=0.05)


def test_without_pairs_seeds_alone_tell_and_one_says_nothing() -> None:
    assert compared([1.0], [], 0) is None and compared([], [], 0) is None
    assert compared([90.6 - 90.0] * 2, [], 0) is None
    assert compared([0.0, 0.0], [], 0) is None
    found = compared([2.0 - 1.0, 2.5 - 1.4, 2.2 - 1.3], [], 0)
    assert found is not None and found.items == 0 and found.value == pytest.approx(1.0)
    assert (*found.interval(0.05), found.p) == pytest.approx((0.7516, 1.2484, 0.00332), rel=1e-3)
    wide = compared([2.0 - 1.0, 0.0 - 1.2], [], 0)
    assert wide is not None and wide.p > 0.5


def test_equal_methods_seldom_differ_whatever_the_number_of_seeds() -> None:
    """Seeds drawn with replacement call 26, 17 and 10 % of equal methods different here."""
    for count, of_items in ((2, 0.05), (3, 0.3), (5, 0.05)):
        rng = np.random.default_rng(0)
        values = []
        for _ in range(600):
            items = rng.normal(0, of_items)
            differences = [float(items + rng.normal(0, 0.3)) for _ in range(count)]
            around = rng.normal(0, of_items, 1000)
            found = compared(differences, [each + around for each in differences], 400)
            assert found is not None
            values.append(found.p)
        # Three standard errors of a share of 5 % (0.32 %) in 600 trials.
        assert np.mean(np.array(values) < 0.05) < 0.05 + 3 * 0.0089
        assert np.mean(np.array(values) < 0.05 / 16) < 0.0032 + 3 * 0.0023


def test_holm() -> None:
    assert holm([]) == []
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])
    assert holm([0.2]) == pytest.approx([0.2])
    assert holm([0.01, 0.02], 5) == pytest.approx([0.05, 0.08]), "three were not made"


def test_an_interval_excludes_zero_exactly_where_its_p_is_below_the_level() -> None:
    rng = np.random.default_rng(3)
    for family in (1, 6, 40):
        made = []
        for _ in range(6):
            seeds = list(rng.normal(rng.choice([0, 0.5, 1, 3]), 0.6, rng.integers(2, 6)))
            drawn = [each + rng.normal(0, 0.1, 10_000) for each in seeds]
            made.append(compared(seeds, drawn if rng.random() < 0.6 else [], 50))
        known = [each for each in made if each is not None]
        for one, of_one in zip(corrected(known, family), known, strict=True):
            assert (one.p < 0.05) == (not one.low <= 0 <= one.high), (family, one)
            low, high = of_one.interval(0.05)
            assert one.low <= low and high <= one.high and one.p >= of_one.p
            assert one.detectable > (one.high - one.low) / 2
            assert one.turned.turned == one and one.turned.value == -one.value
    (bounded,) = corrected([known[0]], 1)
    assert bounded.within(10) and not bounded.within(0)


def test_four_of_five_repetitions_show_what_is_detectable() -> None:
    rng = np.random.default_rng(0)
    first = compared(list(rng.normal(0, 1, 6)), [], 0)
    assert first is not None
    size = corrected([first], 1)[0].detectable / first.error  # in standard errors
    found = [compared(list(rng.normal(size / 6**0.5, 1, 6)), [], 0) for _ in range(600)]
    share = np.mean([each is not None and each.p < 0.05 for each in found])
    assert share == pytest.approx(0.8, abs=0.08)


def test_a_claim_needs_the_start_and_a_difference_that_matters(
    plan: Plan, folder: StudyFolder
) -> None:
    above = Claim(says="0.1 above 0.2", better="0.1", than="0.2")
    below = Claim(says="0.2 above 0.1", better="0.2", than="0.1")
    same = Claim(says="0.1 above 0.05", better="0.1", than="0.05")

    def words(*claims: Claim, smallest: float = 0.0, **more: Any) -> list[str]:
        study = plan.definition.study
        scores = study.scores.model_copy(update={"smallest": smallest})
        results = results_of(plan, folder, claims=list(claims), scores=scores, **more)
        return [verdict.words for verdict in results.verdicts]

    assert words(above, start="0.05") == ["better, but not shown above 0.05"]
    assert words(above, below, start="0.2") == ["holds", "does not hold"]
    wide = 100.0
    assert words(above, below, same, smallest=wide) == ["too small to matter"] * 3
    assert words(same, smallest=0.01) == ["cannot be decided"]
    found = results_of(plan, folder, claims=[above], start="0.05")
    assert "| over 0.05 |" in page_of(found, folder)
    assert len(found.family) == 5, "both of the table's scores, and 0.1 with 0.2"
    found = results_of(plan, folder, scores=plan.definition.study.scores.model_copy(
        update={"smallest": {"a.test": wide}}))  # fmt: skip
    assert [line.words for line in found.tables["a.test"]][1:] == ["too small to matter"] * 2
    assert found.tables["dev"][1].words == SAME_OF_ALL
    assert "the smallest difference that matters is 100" in page_of(found, folder)


def test_a_part_without_an_effect_decides_nothing(plan: Plan, folder: StudyFolder) -> None:
    claims = [Claim(says="0.1 above 0.2", better="0.1", than="0.2")]
    found = results_of(plan, folder, claims=claims, without="0.1")
    said = "It is not shown that 0.05 differs from 0.1, so"
    assert found.verdicts[0].words.startswith("cannot be decided: the part")
    assert said in page_of(found, folder)
    found = results_of(plan, folder, claims=claims, without="0.2")
    assert found.verdicts[0].words == "holds" and "It is not shown" not in page_of(found, folder)


def test_means_are_over_the_seeds_of_their_tests_in_one_number_format(
    plan: Plan, folder: StudyFolder
) -> None:
    results = results_of(plan, folder)
    few = replace(results, rows=[r for r in results.rows if r.point.number != 1 or r.seed < 3])
    base, near, far = few.tables["a.test"]
    values = [r.scores["a.test.spearman"] for r in results.rows if r.point.number == 3]
    assert (base.seeds, near.seeds, far.seeds) == (2, 2, 2)
    assert far.mean == pytest.approx(np.mean(values[:2]))
    assert far.difference is not None and base.mean is not None and far.mean is not None
    assert far.difference.value == pytest.approx(far.mean - base.mean)
    other = [replace(r, facts={**r.facts, "precision": "bf16"}) if r.point.number == 3 else r
             for r in results.rows]  # fmt: skip
    base, near, far = replace(results, rows=other).tables["a.test"]
    assert near.difference is not None and far.difference is None
    assert far.words == "trained in another number format than the baseline"


def test_a_page_says_that_items_are_lacking_and_that_a_best_rate_is_at_an_end(
    plan: Plan, folder: StudyFolder
) -> None:
    tuned = {"tune": {"over": ["temperature"]}}
    study = type(plan.definition.study).model_validate(
        {**plan.definition.study.model_dump(exclude_defaults=True), **tuned}
    )
    results = results_of(plan, folder)
    definition = replace(plan.definition, study=study)
    for number, at_end in ((1, True), (2, False), (3, True)):
        chosen = [point for point in plan.points if point.number == number]
        rows = [row for row in results.rows if row.point.number == number]
        page = page_of(replace(results, definition=definition, points=chosen, rows=rows), folder)
        assert ("The best temperature lies at an end of those" in page) == at_end
    assert "were not kept" not in page_of(results, folder)
    for row in results.rows[:2]:
        for ending in (".tsv", ".items.tsv"):
            folder.scores(row.key, f"s{ending}").unlink()
    bare = results_of(plan, folder)
    assert "The test items of 2 of 9 runs were not kept" in page_of(bare, folder)
    assert bare.tables["a.test"][2].words == "lower on these test texts"


def test_a_point_whose_baseline_was_not_chosen_is_not_compared(
    plan: Plan, folder: StudyFolder
) -> None:
    results = results_of(plan, folder)
    rows = [row for row in results.rows if row.point.number > 1]
    lines = replace(results, points=plan.points[1:], rows=rows).tables["a.test"]
    assert [line.words for line in lines] == ["its baseline, 0.05, was not chosen"] * 2
    assert all(line.mean and line.difference is None for line in lines)
    rows = [
        row for row in results.rows if (row.point.number, row.seed) not in ((1, 1), (2, 2), (2, 3))
    ]
    assert replace(results, rows=rows).tables["a.test"][1].words == NO_SEED


def test_a_mean_of_other_sets_has_no_difference_from_the_papers(
    plan: Plan, folder: StudyFolder
) -> None:
    results = results_of(plan, folder, shown=["sts.mean"])
    (line,) = [line for line in results.tables["sts.mean"] if line.label == "0.05"]
    line = replace(line, score="trec.accuracy", paper=70.0, stands_for="")
    assert _beside(results, "sts.mean", line)[-1] == "other sets"
    whole = _beside(results, "sts.mean", replace(line, score="mean.spearman"))[-1]
    assert line.mean is not None and line.interval is not None
    low, high = (end - 70.0 for end in line.interval)
    assert whole == f"{line.mean - 70.0:+.2f} [{low:+.2f}, {high:+.2f}]"
