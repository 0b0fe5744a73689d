"""Runs as their folders tell them: listed, chosen, sorted, compared."""

from __future__ import annotations

import fcntl
import json
from pathlib import Path
from typing import Any

import pytest
import tomlkit
from cse_study.pages.comparing import called, different_settings, scores_beside
from cse_study.pages.run_files import find_runs, read_run

from cse_core.errors import CseError
from tests.fixtures.command_line import Cse, refused

SETTING = "pooling mean, at most 512 tokens"


def made(
    folder: Path,
    recipe: str = "simcse",
    lr: float = 3e-5,
    best: float | None = 70.0,
    test: dict[str, float] | None = None,
    setting: str = SETTING,
    parts: tuple[str, ...] = (),
) -> Path:
    """Make the files of a run of 20 steps with a dev score at 10 and 20."""
    folder.mkdir(parents=True)
    content: dict[str, Any] = {
        "name": recipe,
        "model": {"name": "starter"},
        "data": {"path": ["/somewhere/texts.txt"]},
        "train": {"lr": lr, "seed": 1},
        "loss": [{"use": "infonce", "name": "infonce", "temperature": 0.05}],
        "aug": [{"use": f"cse-x/{name}", "name": name, "rate": 0.1} for name in parts],
        "run": {"device": "cpu", "data": {"rows": 400, "dev": ["stsb.dev"]}},
    }
    (folder / "run.toml").write_text(tomlkit.dumps(content))
    lines = [
        {"step": 10, "round": 0, "loss": 2.0, "infonce.negatives": 63, "stsb.dev.spearman": 60.0},
        {"step": 20, "round": 0, "loss": 1.0, "infonce.negatives": 63, "stsb.dev.spearman": 69.0},
    ]
    (folder / "metrics.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    if best is not None:
        result = {"steps": 20, "chosen_by": "stsb.dev.spearman", "score": best, "seconds": 3.0}
        (folder / "result.json").write_text(json.dumps(result))
    if test is not None:
        results = {name: {"spearman": value, "pairs": 9, "setting": "all"}
                   for name, value in test.items()}  # fmt: skip
        line = {"time": "2026-01-01T00:00:00+00:00", "encoder": setting, "results": results}
        with (folder / "evaluations.jsonl").open("a") as file:
            file.write(f"{json.dumps(line)}\n")
    return folder


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    made(tmp_path / "a", test={"stsb.test": 65.0, "mean-of-7": 63.0})
    made(tmp_path / "deep/er/b", "hicl", lr=1e-4, best=72.5, parts=("cutoff",))
    made(tmp_path / "c", best=None)
    return tmp_path


def test_a_run_that_has_not_ended_says_how_far_it_came(runs: Path) -> None:
    run = read_run(runs / "c")
    assert (run.state, run.steps, run.dev) == ("stopped", 20, ("stsb.dev.spearman", 69.0))
    with (runs / "c/.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert read_run(runs / "c").state == "running"


def test_half_a_line_of_metrics_is_left_out(runs: Path) -> None:
    with (runs / "c/metrics.jsonl").open("a") as file:
        file.write('{"step": 30, "ro')
    assert read_run(runs / "c").steps == 20


def test_folders_of_models_and_links_are_no_runs(runs: Path) -> None:
    made(runs / "a/model/inside")
    (runs / "latest").symlink_to("a")
    assert {run.name for run in find_runs([runs, runs / "a"], pytest.fail)} == {"a", "b", "c"}


def test_the_list_as_json(runs: Path, cse: Cse) -> None:
    found = json.loads(cse("runs", str(runs), "--json").out)["runs"]
    assert [run["name"] for run in found] == ["a", "b", "c"]
    assert found[0]["dev"] == {"name": "stsb.dev.spearman", "score": 70.0}
    assert {score["set"]: score["value"] for score in found[0]["scores"]} == {
        "stsb.test": 65.0,
        "mean-of-7": 63.0,
    }
    assert found[1]["recipe"] == "hicl" and found[1]["scores"] == []


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["--where", "recipe=hicl"], ["b"]),
        (["--where", "train.lr=0.00003"], ["a", "c"]),
        (["--where", "aug.cutoff.rate=0.1"], ["b"]),
        (["--where", "state=finished", "--where", "recipe=simcse"], ["a"]),
        (["--where", "data.path=/somewhere/texts.txt", "--where", "steps=20"], ["a", "b", "c"]),
        (["--where", "steps=2"], []),
        (["--where", "recipe=hicl", "--where", "aug.cutoff.rate=0.1"], ["b"]),
        (["--sort", "dev"], ["b", "a", "c"]),
        (["--sort", "test"], ["a", "b", "c"]),
    ],
)
def test_runs_are_chosen_and_sorted(
    runs: Path, cse: Cse, words: list[str], names: list[str]
) -> None:
    found = json.loads(cse("runs", str(runs), *words, "--json").out)["runs"]
    assert [run["name"] for run in found] == names


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--where", "recipes=x"], "--where: no column or option of a run (got 'recipes'); did"),
        (["--where", "recipe=x", "--where", "recipes=x"], "--where: no column or option of a run"),
        (["--where", "recipe"], "--where: is not WHAT=VALUE (got 'recipe'); write recipe=simcse"),
        (["--sort", "devs"], "--sort: is not a column (got 'devs'); did you mean dev?"),
    ],
)
def test_mistakes_are_one_line(runs: Path, cse: Cse, words: list[str], line: str) -> None:
    refused(cse("runs", str(runs), *words), line)


def test_a_folder_without_runs(tmp_path: Path, cse: Cse) -> None:
    assert "no run is here" in cse("runs", str(tmp_path)).out
    refused(cse("runs", str(tmp_path / "none")), "no such folder")
    with pytest.raises(CseError, match="is not a run"):
        read_run(tmp_path)


@pytest.mark.parametrize(
    ("file", "content", "line"),
    [
        ("metrics.jsonl", '{"loss": 1.0}', "metrics.jsonl:1: step: field required"),
        ("evaluations.jsonl", '{"results": {"a": 3}}', "evaluations.jsonl:1: results.a: input"),
        ("result.json", '{"steps": "four"}', "result.json: steps: input should be a valid integer"),
        ("result.json", '{"scores": [1]}', "result.json: scores: input should be a valid dict"),
        ("result.json", "nothing", "result.json: is not JSON"),
        ("run.toml", 'model = "bert"', "run.toml: model: input should be a valid dictionary"),
        ("run.toml", "model", "run.toml: is not valid TOML"),
        ("metrics.jsonl", "\udcff", "metrics.jsonl: cannot be read"),
    ],
)
def test_a_damaged_run_is_one_line_and_hides_no_other(
    runs: Path, cse: Cse, file: str, content: str, line: str
) -> None:
    (runs / "a" / file).write_bytes(content.encode(errors="surrogateescape"))
    found = cse("runs", str(runs), "--json")
    assert [run["name"] for run in json.loads(found.out)["runs"]] == ["b", "c"]
    assert found.err.count("\n") == 1 and line in found.err
    refused(cse("compare", str(runs / "a"), str(runs / "c")), line)


def test_the_test_score_is_the_newest(runs: Path) -> None:
    made(runs / "d", test={"stsb.test": 65.0}, setting="pooling cls, at most 512 tokens")
    line = {"encoder": SETTING, "results": {"stsb.test": {"spearman": 64.0}}}
    dev = {"encoder": SETTING, "results": {"stsb.dev": {"spearman": 70.0}}}
    with (runs / "d/evaluations.jsonl").open("a") as file:
        file.write(f"{json.dumps(line)}\n{json.dumps(dev)}\n")
    test = read_run(runs / "d").test
    assert test is not None and (test.value, test.setting) == (64.0, SETTING)


def test_a_score_so_far_is_none_of_a_finished_run(runs: Path) -> None:
    found = [read_run(runs / name) for name in ("a", "c")]
    scores = scores_beside(found)
    assert scores["dev: stsb.dev.spearman"] == [70.0, None]
    assert scores["dev so far: stsb.dev.spearman"] == [None, 69.0]
    assert different_settings(found)["state"] == ["finished", "stopped"]


def test_other_texts_in_a_file_of_one_name_differ(runs: Path) -> None:
    for name in ("a", "c"):
        with (runs / name / "run.toml").open("a") as file:
            file.write(f'fingerprint = "sha256:{name}"\n')
    found = [read_run(runs / name) for name in ("a", "c")]
    assert different_settings(found)["contents of the texts"] == ["sha256:a", "sha256:c"]


def test_what_differs(runs: Path) -> None:
    found = [read_run(runs / name) for name in ("a", "deep/er/b")]
    assert different_settings(found) == {
        "name": ["simcse", "hicl"],
        "train.lr": [3e-5, 1e-4],
        "aug.cutoff": ["-", "cse-x/cutoff"],
    }
    assert "aug.cutoff.rate" in different_settings(found, every=True)


def test_scores_of_other_settings_are_rows_of_their_own(tmp_path: Path) -> None:
    made(tmp_path / "a", test={"stsb.test": 65.0})
    made(tmp_path / "b", test={"stsb.test": 66.0}, setting="pooling cls, at most 64 tokens")
    found = [read_run(tmp_path / name) for name in ("a", "b")]
    assert scores_beside(found) == {
        "dev: stsb.dev.spearman": [70.0, 70.0],
        f"stsb.test.spearman ({SETTING})": [65.0, None],
        "stsb.test.spearman (pooling cls, at most 64 tokens)": [None, 66.0],
    }


def test_names_tell_runs_apart(tmp_path: Path) -> None:
    paths = [made(tmp_path / "one/x"), made(tmp_path / "two/x")]
    assert called([read_run(path) for path in paths]) == ["one/x", "two/x"]
    assert called([read_run(paths[0])] * 2) == ["x (1)", "x (2)"]


def test_compare(runs: Path, cse: Cse) -> None:
    made(runs / "d", best=68.0, test={"stsb.test": 66.25})
    shown = cse("compare", str(runs / "a"), str(runs / "d")).out
    assert "no setting differs" in shown
    assert "+1.25" in shown and "-2.00" in shown
    found = json.loads(cse("compare", str(runs / "a"), str(runs / "c"), "--json").out)
    assert found["scores"]["stsb.test.spearman"] == [65.0, None]
    assert [run["called"] for run in found["runs"]] == ["a", "c"]


def test_compare_needs_two_runs(runs: Path, cse: Cse) -> None:
    refused(cse("compare", str(runs / "a")), "names one run")
    refused(cse("compare", str(runs / "a"), str(runs / "deep/../a")), "names a run twice")
