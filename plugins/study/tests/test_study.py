"""Whole studies with a tiny encoder: run, repeated, added to, killed, and finished elsewhere."""

import gzip
import io
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import pytest
import torch
from cse_study.execution import child
from cse_testkit import tiny_encoder

from cse_cli.main import run
from tests.fixtures.command_line import CSE, Cse, refused
from tests.fixtures.processes import fork_server

STUDY = """
summary = "Temperature"
seeds = [1]
[settings]
recipe = "simcse"
model = "@model:first"
data = "@sentences"
dev = "@dev"
"train.batch_size" = 4
"train.save_steps" = 1
[[axes]]
values = { "loss.infonce.temperature" = [0.05, 0.2] }
"""
WORDS = ("boat", "garden", "train", "judge", "violin", "planet")


@dataclass(frozen=True)
class Place:
    """Files that a study needs."""

    folder: Path

    def study(self, text: str = STUDY) -> str:
        file = self.folder / "mine.toml"
        file.write_text(text, encoding="utf-8")
        return str(file)

    def words(self, *more: str, text: str = STUDY, out: str = "studies") -> list[str]:
        folder = self.folder
        return [
            "study", self.study(text), "--model", str(folder / "encoder"), "--data",
            str(folder / "texts.txt"), "--dev", str(folder / "pairs.tsv"), "--pairs",
            str(folder / "pairs.tsv"), "--out", str(folder / out), *more,
        ]  # fmt: skip


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    tiny_encoder(tmp_path / "encoder")
    lines = [f"the {a} is near the {b}" for a in WORDS for b in WORDS if a != b]
    (tmp_path / "texts.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    rows = [
        f"the {a} is old\tthe {b} is old\t{5 if a == b else n % 5}"
        for n, a in enumerate(WORDS)
        for b in WORDS
    ]
    head = "sentence1\tsentence2\tscore"
    (tmp_path / "pairs.tsv").write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    return Place(tmp_path)


def scores(found: dict[str, Any]) -> dict[tuple[str, int], dict[str, float]]:
    return {(row["point"], row["seed"]): row["scores"] for row in found["rows"]}


def weights(place: Place, out: str) -> dict[str, str]:
    """The digest of each run's weights, by its key."""
    return {
        run.name: sha256((run / "model" / "model.safetensors").read_bytes()).hexdigest()
        for run in sorted((place.folder / out / "runs").iterdir())
        if (run / "model").is_dir() and not run.is_symlink()
    }


class Here:
    """What stands for a process of ``cse``: the command runs here when it is waited for."""

    def __init__(self, words: Sequence[str], *, stderr: IO[bytes], **_: object) -> None:
        self.words, self.said, self.returncode = (
            words[words.index("cse") + 1 :],
            Path(stderr.name),
            0,
        )

    def communicate(self) -> tuple[bytes, bytes]:
        out, said = (io.TextIOWrapper(io.BytesIO(), write_through=True) for _ in range(2))
        with redirect_stdout(out), redirect_stderr(said):
            self.returncode = run(self.words)
        read = out.buffer.getvalue(), said.buffer.getvalue()  # type: ignore[attr-defined]
        with self.said.open("ab") as log:
            log.write(read[1])
        return read

    def send_signal(self, number: int) -> None:
        pass


class Pool(ThreadPoolExecutor):
    """What stands for the threads that wait for processes: a job is made when it is given."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make runs in this process: test_running and the slow tests make them in others."""

    names = ("run", "PIPE", "DEVNULL", "SubprocessError")
    known = {name: getattr(subprocess, name) for name in names}
    monkeypatch.setattr("cse_study.execution.jobs.ThreadPoolExecutor", Pool)
    monkeypatch.setattr("cse_study.session.check_scoring", lambda *_: None)
    monkeypatch.setattr("cse_study.execution.jobs.subprocess", SimpleNamespace(Popen=Here, **known))


def serve(asks: socket.socket) -> None:
    torch.set_num_threads(1)
    sys.exit(child.main([str(os.getppid()), "serve", str(asks.detach())]))


class OfForkServer:
    """What stands for the process that forks: itself a fork of the tests' fork server."""

    def __init__(self, _: Sequence[str], *, pass_fds: Sequence[int], **__: object) -> None:
        asks = socket.socket(fileno=os.dup(pass_fds[0]))
        process = fork_server().Process(target=serve, args=(asks,))
        process.start()
        asks.close()
        self.kill, self.wait = process.kill, process.join


def test_a_fork_computes_what_a_process_of_its_own_computes(
    cse: Cse, place: Place, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cse_study.session.check_scoring", lambda *_: None)
    known = SimpleNamespace(DEVNULL=None, Popen=OfForkServer)
    monkeypatch.setattr("cse_study.execution.forks.subprocess", known)
    words = ("--steps", "2", "--points", "1", "--json")
    forks = cse(*place.words(*words, out="forks"))
    assert forks.code == 0, forks.err
    request.getfixturevalue("in_process")
    request.addfinalizer(partial(torch.set_num_threads, torch.get_num_threads()))
    torch.set_num_threads(1)  # as the forks: sums of several threads round otherwise
    own = cse(*place.words(*words, out="own"))
    assert own.code == 0, own.err
    mine = json.loads(own.out)
    assert scores(json.loads(forks.out)) == scores(mine)
    assert weights(place, "forks") == weights(place, "own") != {}

    def losses(out: str) -> list[float]:
        files = sorted((place.folder / out / "runs").glob("*/metrics.jsonl"))
        return [json.loads(line)["loss"] for file in files for line in file.open()]

    assert losses("forks") == losses("own")


@pytest.mark.usefixtures("in_process")
def test_a_failed_run_is_named_the_others_go_on_and_nothing_is_made_twice(
    cse: Cse, place: Place
) -> None:
    broken = tiny_encoder(place.folder / "broken", hidden=64)
    file = broken / "model.safetensors"
    file.write_bytes(file.read_bytes()[:200])
    text = STUDY.replace('model = "@model:first"\n', "").replace(
        'values = { "loss.infonce.temperature" = [0.05, 0.2] }',
        'values = { model = ["@model:second", "@model:first"] }',
    )
    words = place.words("--steps", "2", "--model", f"second={broken}", text=text)
    printed = cse(*words)
    assert printed.code == 1, printed.err
    assert "warning: model=model:second, seed 1 failed: model.name: the weights are" in printed.err
    assert "no finished run" in printed.out and "model:first" in printed.out
    runs = place.folder / "studies" / "runs"
    logs = {log.name: log.stat().st_size for log in runs.glob("*.log")}
    assert len(logs) == 2
    shown = cse(*words, "--no-run", "--seeds", "2")
    assert shown.code == 0 and "no finished run" in shown.out
    (place.folder / "other.tsv").write_text("sentence1\tsentence2\tscore\na\tb\t1\n")
    other = cse(*words, "--no-run", "--pairs", str(place.folder / "other.tsv")).out
    assert "trained, not scored on these sets" in other and "no finished run" in other
    assert {log.name: log.stat().st_size for log in runs.glob("*.log")} == logs
    assert list((place.folder / "studies").glob("*/results.csv"))
    done = [runs / key for key in weights(place, "studies")]
    assert [(run / "checkpoints").exists() for run in done] == [False]
    packed = place.folder / "packed.gz"
    assert cse(*words, "--no-run", "--pack", str(packed)).code == 0
    there = ["--out", str(place.folder / "there"), "--unpack", str(packed)]
    rows = json.loads(cse(*words, *there, "--no-run", "--json").out)["rows"]
    assert [row["key"] for row in rows if row["status"] == "done"] == [run.name for run in done]
    file.write_bytes((tiny_encoder(place.folder / "whole", hidden=64) / file.name).read_bytes())
    again = cse(*words, "--json", "--points", "model=model:first")
    assert again.code == 0
    assert {log.name: log.stat().st_size for log in runs.glob("*.log")} == logs
    rows = json.loads(again.out)["rows"]
    assert [row["status"] for row in rows] == ["done"]
    assert {"pairs.spearman", "pairs.dev.spearman"} <= rows[0]["scores"].keys() or rows[0]["scores"]


@pytest.mark.usefixtures("in_process")
def test_rows_of_a_pack_are_repeated_and_compared(cse: Cse, place: Place) -> None:
    """Equal bit for bit here; near, another or failed where the pack says otherwise."""
    packed, files = place.folder / "packed.gz", ("--files", str(place.folder))
    study = ("--study", str(place.folder / "mine.toml"))
    assert cse(*place.words("--steps", "2", "--points", "1", "--pack", str(packed))).code == 0
    head, line = map(json.loads, gzip.decompress(packed.read_bytes()).splitlines())
    assert [entry[1] for entry in line["facts"]["evaluations"]] == [2]
    text = json.dumps(head)
    assert str(place.folder) not in text and "encoder/model.safetensors" in text

    def verified(**changes: Callable[[dict[str, Any]], object]) -> tuple[int, dict[str, Any]]:
        said = json.loads(json.dumps(line))
        for change in changes.values():
            change(said)
        file = place.folder / "changed.gz"
        file.write_bytes(gzip.compress("\n".join(map(json.dumps, (head, said))).encode()))
        printed = cse("verify", str(file), *study, *files, "--json")
        (row,) = json.loads(printed.out)["rows"]
        return printed.code, row

    before = sorted(place.folder.rglob("*.safetensors"))
    code, row = verified()
    assert (code, row["verdict"], row["largest"], row["parted"]) == (0, "equal", 0, "")
    assert sorted(place.folder.rglob("*.safetensors")) == before, "nothing is kept"

    def other(points: float) -> Callable[[dict[str, Any]], object]:
        def change(said: dict[str, Any]) -> None:
            for scoring in said["scores"].values():
                for results in scoring["results"].values():
                    results["spearman"] += points
            said["facts"]["evaluations"][-1][2] += points
            said["facts"]["versions"]["torch"] = "1.0"

        return change

    for points, verdict in ((0.05, "near"), (5.0, "other")):
        code, row = verified(change=other(points))
        assert (code, row["verdict"]) == (int(verdict == "other"), verdict)
        assert row["largest"] == pytest.approx(points, abs=1e-6)
        assert row["apart"] and all(name.endswith("spearman") for name in row["apart"])
        assert "round 0, step 2: dev" in row["parted"] and "torch: 1.0 then" in row["parted"]
    old = place.folder / "old.gz"
    old.write_bytes(gzip.compress(json.dumps(line).encode()))
    refused(cse("verify", str(old), *study, *files), "does not say which study", "--unpack FILE")


@pytest.mark.slow
@pytest.mark.usefixtures("in_process")
def test_seeds_and_points_added_later_redo_nothing(cse: Cse, place: Place) -> None:
    first = cse(*place.words("--steps", "2", "--points", "1", "--json"))
    assert first.code == 0, first.err
    before = weights(place, "studies")
    times = {p: p.stat().st_mtime_ns for p in (place.folder / "studies").rglob("*.safetensors")}
    more = cse(*place.words("--steps", "2", "--seeds", "2", "--json"))
    assert more.code == 0, more.err
    assert len(weights(place, "studies")) == 4
    assert before.items() <= weights(place, "studies").items()
    assert {path: path.stat().st_mtime_ns for path in times} == times
    assert scores(json.loads(first.out)).items() <= scores(json.loads(more.out)).items()


@pytest.mark.slow
@pytest.mark.usefixtures("in_process")
def test_a_function_hears_of_finished_runs_and_others_start_from_one(
    cse: Cse, place: Place
) -> None:
    text = STUDY.replace("@model:first", "@run:start")
    text += '[runs.start]\nrecipe = "simcse"\nmodel = "@model:first"\n"train.batch_size" = 4\n'
    text += '[after]\ncall = "builtins:dict"\nlevel = 2.5\n'
    printed = cse(*place.words("--steps", "2", "--json", text=text))
    assert printed.code == 0, printed.err
    found = json.loads(printed.out)
    assert len(weights(place, "studies")) == 3
    assert [row["scores"]["level"] for row in found["rows"]] == [2.5, 2.5]
    recipe = (place.folder / "studies" / "runs" / f"{found['rows'][0]['key']}.toml").read_text()
    assert str(place.folder / "studies" / "runs") in recipe


def started(words: Sequence[str]) -> subprocess.Popen[bytes]:
    """A study in a process group of its own, as a user's shell starts it."""
    return subprocess.Popen(
        [CSE, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip


def wait_for(what: Callable[[], bool], seconds: float = 180.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def checkpoints(place: Place, out: str) -> int:
    return len(list((place.folder / out / "runs").glob("*/checkpoints/*step-*")))


def finished(place: Place, out: str) -> int:
    runs = (place.folder / out / "runs").glob("*/result.json")
    return len([file for file in runs if not file.parent.is_symlink()])


@pytest.mark.slow
def test_a_study_killed_twice_and_finished_elsewhere_equals_one_run_straight(
    cse: Cse, place: Place
) -> None:
    size = ("--steps", "40", "--seeds", "2")
    straight = cse(*place.words(*size, "--json", out="straight"))
    assert straight.code == 0, straight.err
    for count in (1, 2):
        with started(place.words(*size, "--workers", str(count), out="killed")) as study:
            wait_for(lambda: checkpoints(place, "killed") > 1)
            time.sleep(1)
            os.killpg(study.pid, signal.SIGKILL)
    assert finished(place, "killed") < 4
    done = cse(*place.words(*size, "--workers", "2", "--json", out="killed"))
    assert done.code == 0, done.err
    assert scores(json.loads(done.out)) == scores(json.loads(straight.out))
    assert weights(place, "killed") == weights(place, "straight")
    assert len(weights(place, "killed")) == 4


@pytest.mark.slow
def test_an_interrupt_writes_checkpoints_and_says_how_to_go_on(cse: Cse, place: Place) -> None:
    size = ("--steps", "200", "--points", "1")
    with started(place.words(*size)) as study:
        wait_for(lambda: checkpoints(place, "studies") > 1)
        os.killpg(study.pid, signal.SIGINT)
        _, said = study.communicate(timeout=120)
    assert study.returncode == 130
    text = said.decode()
    assert "Traceback" not in text
    assert "to resume, run: cse study" in text
    assert checkpoints(place, "studies") and not finished(place, "studies")
    with pytest.raises(ProcessLookupError):
        os.killpg(study.pid, 0)


@pytest.mark.slow
def test_two_studies_at_once_make_each_run_once(cse: Cse, place: Place) -> None:
    words = place.words("--steps", "5")
    with started(words) as one, started(words) as other:
        for study in (one, other):
            _, said = study.communicate(timeout=400)
            assert study.returncode == 0, said
    logs = [log.read_text() for log in (place.folder / "studies" / "runs").glob("*.log")]
    assert len(logs) == 2
    assert [text.count("pairs with their cosines are in") for text in logs] == [1, 1]


def test_what_cannot_be_written_or_run_is_refused_before_any_run(
    place: Place, cse: Cse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place.folder)
    (place.folder / "bad.tsv").write_text("sentence1\tsentence2\tscore\n", encoding="utf-8")
    (place.folder / "other").mkdir()
    (place.folder / "other" / "pairs.tsv").write_text("sentence1\tsentence2\tscore\na\tb\t1\n")
    for words, line in {
        "--pairs other/pairs.tsv --dry-run": "two sets are called 'pairs', a test set and the dev",
        "--page encoder": "--page: is a folder",
        "--page texts.txt/page.md": "--page: cannot be written to (File exists)",
        "--pack texts.txt/page.gz": "--pack: cannot be written to (File exists)",
        "--out texts.txt --dry-run": "texts.txt is a file (got",
        "--data-dir nodir --dry-run": "--data-dir: no such folder (got 'nodir')",
        "--suite sts --data-dir encoder --dry-run": "--suite: no file of it is in",
        "--spread interval --no-run": "--spread: is of the table of --latex",
        "--unpack old.gz --dry-run": "--unpack: writes runs of the pack (got 'old.gz'); leave",
        "--pairs nope.tsv --dry-run": "nope.tsv: no such file; in folder ",
        "--seeds 0 --dry-run": "--seeds: names no seeds (got '0'); write how many, --seeds 5",
        "--model first=nobody/none --points 1": "model.name: is not in the cache",
        "--pairs bad.tsv": "bad.tsv: the file contains only blank lines or a header",
    }.items():
        refused(cse(*place.words(*words.split())), line)
        assert not (place.folder / "studies").exists(), words
    text = 'summary = "x"\nkind = "command"\ncommand = ["bench", "--json"]\n'
    printed = cse("study", place.study(text), "--pack", "runs.gz")
    refused(printed, "--pack: is for runs, and this study calls commands or functions")


@pytest.mark.slow
@pytest.mark.usefixtures("in_process")
def test_trials_run_first_and_the_table_has_what_they_chose(cse: Cse, place: Place) -> None:
    text = STUDY.replace("seeds = [1]", "seeds = [1, 2, 3]")
    text += '[[axes]]\nname = "lr"\nvalues = { "train.lr" = [1e-5, 1e-4] }\n[tune]\nover = ["lr"]\n'
    words = place.words("--steps", "2", text=text)
    plan = cse(*words, "--dry-run").out
    assert "trials of lr choose by the dev score; then 4 more runs follow" in plan
    found = json.loads(cse(*words, "--json").out)
    (lines,) = found["tables"].values()
    assert [line["seeds"] for line in lines] == [3, 3]
    assert len(found["rows"]) == 8
    chosen = {line["point"]["number"] for line in lines}
    scored = {row["number"] for row in found["rows"] if "setting" in row and row["setting"]}
    assert scored == chosen
    assert {row["status"] for row in found["rows"]} == {"done"}
