"""Runs as their folders tell them: listed, sorted, compared, and grouped over seeds."""

import errno
import fcntl
import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tomlkit
from cse_study.pages.runs import (
    Run,
    called,
    different_settings,
    find_runs,
    groups_of,
    over_steps,
    scores_beside,
)

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
    seed: int = 1,
    **train: Any,
) -> Path:
    """Make the files of a run of 20 steps with a dev score at 10 and 20."""
    folder.mkdir(parents=True)
    content: dict[str, Any] = {
        "name": recipe,
        "model": {"name": "starter"},
        "data": {"path": ["/somewhere/texts.txt"]},
        "train": {"lr": lr, "seed": seed, **train},
        "loss": [{"use": "infonce", "name": "infonce", "temperature": 0.05}],
        "aug": [{"use": f"cse-x/{name}", "name": name, "rate": 0.1} for name in parts],
        "run": {"device": "cpu", "data": {"rows": 400, "dev": ["stsb.dev"]}},
    }
    (folder / "run.toml").write_text(tomlkit.dumps(content))
    lines = [
        {"step": 10, "round": 0, "loss": 2.0, "infonce.negatives": 63, "stsb.dev.spearman": 60.0,
         "stsb.dev.uniformity": -1.0, "infonce.negatives.queue.age": 3.0},
        {"step": 20, "round": 0, "loss": 1.0, "infonce.negatives": 63,
         "stsb.dev.spearman": 68.0 + seed},
    ]  # fmt: skip
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


def append(file: Path, *lines: object) -> None:
    with file.open("a") as opened:
        for line in lines:
            opened.write(line if isinstance(line, str) else f"{json.dumps(line)}\n")


def test_a_run_says_how_far_it_came(runs: Path) -> None:
    run = Run(runs / "c")
    assert (run.state, run.steps, run.dev) == ("stopped", 20, ("stsb.dev.spearman", 69.0))
    with (runs / "c/.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert Run(runs / "c").state == "running"
    append(runs / "c/metrics.jsonl", '{"step": 30, "ro')
    assert Run(runs / "c").steps == 20, "half a line is left out"
    short = {"dev": "stsb.dev.spearman", "uniformity": "stsb.dev.uniformity", "loss": "loss",
             "queue.age": "infonce.negatives.queue.age", "nothing": None}  # fmt: skip
    for name, key in short.items():
        assert run.find_key(name) == key
    made(runs / "a/model/inside")
    (runs / "latest").symlink_to("a")
    found = find_runs([runs, runs / "a"], pytest.fail)
    assert {run.name for run in found} == {"a", "b", "c"}, "models and links are no runs"


def test_runs_are_listed_and_sorted(runs: Path, cse: Cse) -> None:
    def listed(*words: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(cse("runs", str(runs), *words, "--json").out)[
            "runs"
        ]
        return found

    first, second, _ = listed()
    assert first["dev"] == {"name": "stsb.dev.spearman", "score": 70.0}
    scores = {score["set"]: score["value"] for score in first["scores"]}
    assert scores == {"stsb.test": 65.0, "mean-of-7": 63.0}
    assert second["recipe"] == "hicl" and second["scores"] == []
    table = cse("runs", str(runs)).out
    assert "63.00 mean-of-7.spearman" in table and "stopped" in table
    for words, names in {
        (): "a b c",
        ("--sort", "dev"): "b a c",
        ("--sort", "test"): "a b c",
    }.items():
        assert [run["name"] for run in listed(*words)] == names.split(), words
    for words, line in {
        ("--sort", "devs"): "--sort: is not a column (got 'devs'); did you mean dev?"
    }.items():
        refused(cse("runs", str(runs), *words), line)
    (runs / "empty").mkdir()
    assert "no run is here" in cse("runs", str(runs / "empty")).out
    refused(cse("runs", str(runs / "none")), "no such folder")
    with pytest.raises(CseError, match="is not a run"):
        Run(runs / "empty")


def test_a_damaged_run_is_one_line_and_hides_no_other(runs: Path, cse: Cse) -> None:
    deep = "[" * 100_000
    for name, content, line in (
        ("run.toml", 'model = "bert"', "model is 'bert'"),
        ("run.toml", "model", "is not valid TOML"),
        ("run.toml", '[run]\ndata = "x"', "run.data is 'x'"),
        ("result.json", "[]", "it is []"),
        ("result.json", '{"steps": "many"}', "steps is 'many'"),
        ("result.json", None, "is not a regular file"),
        ("metrics.jsonl", f"{deep}\n", "line 1: no JSON"),
        ("metrics.jsonl", '{"step": 1}\n{"step": "2"}\n', "2.step is '2'"),
        ("metrics.jsonl", '{"step": Infinity}\n', "1.step is inf"),
        ("metrics.jsonl", None, "is not a regular file"),
        ("evaluations.jsonl", '{"results": {"a": {"sets": 5}}}\n', "1.results.a.sets is 5"),
        ("evaluations.jsonl", '{"results": 5}\n', "1.results is 5"),
        ("evaluations.jsonl", b"\xff\n", "no JSON"),
    ):
        file = runs / "a" / name
        before = file.read_bytes()
        file.unlink()
        if content is None:
            os.mkfifo(file)
        else:
            file.write_bytes(content if isinstance(content, bytes) else content.encode())
        found = cse("runs", str(runs), "--json")
        assert [run["name"] for run in json.loads(found.out)["runs"]] == ["b", "c"], name
        assert found.err.count("\n") == 1 and f"{file}: " in found.err and line in found.err
        refused(cse("compare", str(runs / "a"), str(runs / "c")), str(file), line)
        refused(cse("runs", str(runs / "a")), str(file), line)
        file.unlink()
        file.write_bytes(before)
    (runs / "a/.lock").unlink(missing_ok=True)
    os.mkfifo(runs / "a/.lock")
    append(runs / "a/metrics.jsonl", deep)
    assert len(Run(runs / "a").lines) == 2, "a killed process leaves half a line"


def test_a_folder_without_permission_hides_no_run(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, read = [run.name for run in find_runs([runs], print)], Path.iterdir

    def iterdir(path: Path) -> Iterator[Path]:
        if path.name == "locked":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return read(path)

    (runs / "locked").mkdir()
    monkeypatch.setattr(Path, "iterdir", iterdir)
    errors: list[CseError] = []
    assert [run.name for run in find_runs([runs], errors.append)] == names
    assert [str(error) for error in errors] == [
        f"{runs / 'locked'}: cannot be read: Permission denied"
    ]
    with pytest.raises(CseError, match="Permission denied"):
        find_runs([runs / "locked"], print)


def test_the_test_score_is_the_newest(runs: Path) -> None:
    made(runs / "d", test={"stsb.test": 65.0}, setting="pooling cls, at most 512 tokens")
    line = {"encoder": SETTING, "results": {"stsb.test": {"spearman": 64.0}}}
    dev = {"encoder": SETTING, "results": {"stsb.dev": {"spearman": 70.0}}}
    append(runs / "d/evaluations.jsonl", line, dev)
    test = Run(runs / "d").test
    assert test is not None and (test.value, test.setting) == (64.0, SETTING)


def test_what_differs(runs: Path) -> None:
    found = [Run(runs / name) for name in ("a", "deep/er/b")]
    differ = {"name": ["simcse", "hicl"], "train.lr": [3e-5, 1e-4],
              "aug.cutoff": ["-", "cse-x/cutoff"]}  # fmt: skip
    assert different_settings(found) == differ
    for name in ("a", "c"):
        append(runs / name / "run.toml", f'fingerprint = "sha256:{name}"\n')
    found = [Run(runs / name) for name in ("a", "c")]
    settings, scores = different_settings(found), scores_beside(found)
    assert settings["contents of the texts"] == ["sha256:a", "sha256:c"]
    assert settings["state"] == ["finished", "stopped"]
    assert scores["dev: stsb.dev.spearman"] == [70.0, None]
    assert scores["dev so far: stsb.dev.spearman"] == [None, 69.0]
    other = "pooling cls, at most 64 tokens"
    made(runs / "d", test={"stsb.test": 66.0}, setting=other)
    scores = scores_beside([Run(runs / name) for name in ("a", "d")])
    assert scores[f"stsb.test.spearman ({SETTING})"] == [65.0, None]
    assert scores[f"stsb.test.spearman ({other})"] == [None, 66.0]


def test_compare(runs: Path, cse: Cse) -> None:
    made(runs / "d", best=68.0, test={"stsb.test": 66.25})
    shown = cse("compare", str(runs / "a"), str(runs / "d")).out
    assert "no setting differs" in shown
    assert "+1.25" in shown and "-2.00" in shown
    found = json.loads(cse("compare", str(runs / "a"), str(runs / "c"), "--json").out)
    assert found["scores"]["stsb.test.spearman"] == [65.0, None]
    assert [run["called"] for run in found["runs"]] == ["a", "c"]
    refused(cse("compare", str(runs / "a")), "names one run")
    refused(cse("compare", str(runs / "a"), str(runs / "deep/../a")), "names a run twice")
    paths = [made(runs / "one/x"), made(runs / "two/x")]
    assert called([Run(path) for path in paths]) == ["one/x", "two/x"]
    assert called([Run(paths[0])] * 2) == ["x (1)", "x (2)"]


def test_runs_that_differ_in_their_seed_alone_are_one_line(tmp_path: Path) -> None:
    def seeds(*names: str) -> list[tuple[str, int]]:
        groups = groups_of([Run(tmp_path / name) for name in names])
        return [(group.label, len(group.runs)) for group in groups]

    made(tmp_path / "a-1", report=["csv"])
    made(tmp_path / "a-2", seed=2)
    made(tmp_path / "b-1", "hicl")
    made(tmp_path / "twin")
    assert seeds("a-1", "a-2", "b-1") == [("a", 2), ("b-1", 1)]
    assert seeds("a-1", "twin") == [("a-1", 1), ("twin", 1)], "one seed twice has no spread"
    first, second = over_steps(groups_of([Run(tmp_path / n) for n in ("a-1", "a-2", "b-1")]),
                               "dev")  # fmt: skip
    assert (first.y[-1], first.seeds[-1], second.spread[-1]) == (69.5, 2, None)
    assert first.spread[-1] == pytest.approx(math.sqrt(0.5))
    append(tmp_path / "a-2/run.toml", 'fingerprint = "sha256:2"\n')
    assert seeds("a-1", "a-2") == [("a-1", 1), ("a-2", 1)], "runs of other texts"
    rounds = [{"step": s, "round": r, "loss": 1.0} for r in (1, 2) for s in (5, 10)]
    (tmp_path / "b-1/metrics.jsonl").unlink()
    append(tmp_path / "b-1/metrics.jsonl", *rounds, '{"step": 15, "round": 2, "loss": NaN}\n')
    (series,) = over_steps(groups_of([Run(tmp_path / "b-1")]), "loss")
    assert list(series.x) == [5, 10, 15, 20], "rounds follow each other, NaN leaves a gap"
