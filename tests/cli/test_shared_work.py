"""Processes of torchrun share what is encoded: the same results, each encodes about half."""

import json
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from cse_testkit import shared_encoder

from cse_engine.run.checkpoint import Checkpoint
from tests.fixtures.command_line import Cse, refused
from tests.fixtures.processes import TwoProcesses
from tests.fixtures.shared_command import counted

COMMAND = "tests.fixtures.shared_command:command"
WORDS = "the a late old train boat garden judge planet violin runs sleeps under near of in".split()
LABELS = ("good", "bad")
ENCODE = ("encode", "starter", "--out", "vectors.npy", "--batch-tokens", "64")
Done = Callable[..., tuple[str, list[int]]]
"""From a command's words, with how many ``ranks`` run it, to what the first one prints, and how
many rows each encodes."""


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    draw = random.Random(5)
    lines = [" ".join(draw.choices(WORDS, k=draw.randint(1, 30))) for _ in range(700)]
    path = tmp_path / "texts.txt"
    path.write_text("\n".join([*lines, "", lines[3]]) + "\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return path


@pytest.fixture
def done(cse: Cse, two_processes: TwoProcesses, tmp_path: Path) -> Done:
    def call(*words: str, ranks: int = 2) -> tuple[str, list[int]]:
        if ranks == 1:
            with counted() as rows:
                alone = cse(*words)
            assert alone.code == 0, alone
            return alone.out, [sum(rows)]
        both = two_processes(COMMAND, str(tmp_path), words)
        assert [code for code, *_ in both] == [0, 0], both
        assert not both[1][1], "the first process alone prints"
        return both[0][1], [count for *_, count in both]

    return call


def wait(seen: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not seen():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def halves(two: list[int], one: list[int]) -> None:
    """Check that two processes encoded what one does, each about half."""
    assert sum(two) == sum(one)
    assert min(two) > 0.4 * sum(one), two


@pytest.mark.slow
def test_commands_find_the_same(texts: Path, tmp_path: Path, done: Done) -> None:
    """What encode writes and what search and eval print, each process encoding about half."""
    lines = texts.read_text(encoding="utf-8").split("\n")[:240]
    pairs = [f"{a}\t{b}\t{n % 6}" for n, (a, b) in enumerate(zip(lines, lines[1:], strict=False))]
    (tmp_path / "pairs.tsv").write_text("\n".join(["sentence1\tsentence2\tscore", *pairs]) + "\n")
    labelled = [f"{LABELS['train' in line]}\t{line * 9}" for line in lines]
    (tmp_path / "labelled.tsv").write_text("\n".join(["label\ttext", *labelled]) + "\n")
    articles = [
        {"id": n, "title": lines[n], "paras": [lines[n + 1 : n + 9]]} for n in range(0, 200, 10)
    ]
    (tmp_path / "docs.jsonl").write_text("\n".join(map(json.dumps, articles)) + "\n")
    for name in ("vectors.npy", "vectors.jsonl"):
        words = ("encode", "starter", str(texts), "--out", name)
        _, one = done(*words, ranks=1)
        alone = (tmp_path / name).read_bytes()
        _, two = done(*words)
        assert (tmp_path / name).read_bytes() == alone
        halves(two, one)
    for words in (
        ("search", "starter", "a late train", "garden", "--data", str(texts), "--json"),
        ("eval", "starter", "--pairs", "pairs.tsv", "--labelled", "labelled.tsv", "--documents",
         "docs.jsonl", "--max-length", "24", "--no-baselines", "--json"),
    ):  # fmt: skip
        expected, one = done(*words, ranks=1)
        found, two = done(*words)
        assert json.loads(found) == json.loads(expected)
        assert words[0] == "search" or len(json.loads(found)["results"]) == 3
        halves(two, one)


@pytest.mark.slow
@pytest.mark.parametrize("killed", [0, 1])
def test_a_killed_process_ends_the_other_and_leaves_nothing_half_written(
    texts: Path, tmp_path: Path, two_processes: TwoProcesses, killed: int
) -> None:
    two_processes.start(COMMAND, str(tmp_path), (*ENCODE, str(texts)), 0.05)
    wait((tmp_path / f"count-{killed}").exists)
    two_processes.running[killed].kill()
    ((code, out, err, _),) = two_processes.results([1 - killed])
    two_processes.close()
    assert (code, out) == (2, "")
    assert err == (
        "error: another process of this run has ended; what it printed says why; start all "
        "processes again\n"
    )
    assert not (tmp_path / "vectors.npy").exists()
    if killed:  # the other one had time to clear up
        assert not list(tmp_path.glob(".vectors*"))


def test_an_error_in_one_ends_all(
    sentences: Path, tmp_path: Path, two_processes: TwoProcesses
) -> None:
    for failing in (0, 1):
        both = two_processes(COMMAND, str(tmp_path), (*ENCODE, str(sentences)), 0, failing)
        assert [code for code, *_ in both] == [2, 2], both
        lines = [err for _, _, err, _ in both]
        assert lines[failing] == "error: test: this process was made to fail\n"
        assert lines[1 - failing] == ""
        assert not list(tmp_path.glob("*vectors*"))
    both = two_processes(COMMAND, str(tmp_path), ("encode", "nowhere/x", "--text", "a"))
    assert [code for code, *_ in both] == [2, 2]
    assert len(both[0][2].splitlines()) == 1 and both[1][1:3] == ("", "")


def test_processes_that_cannot_meet_say_how_to_start_them(
    cse: Cse, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    words = ("train", "-d", str(sentences), "--train.device", "cpu", "--out", str(tmp_path / "run"))
    refused(cse(*words), "WORLD_SIZE", "MASTER_ADDR", "torchrun")
    assert not (tmp_path / "run").exists()


def test_two_processes_stop(sentences: Path, tmp_path: Path, two_processes: TwoProcesses) -> None:
    words = (
        "train", "-r", "simcse", "--model", str(shared_encoder()), "-d", str(sentences),
        "--dev", "none",
        "--train.batch_size", "8", "--train.device", "cpu", "--train.precision", "fp32",
        "--train.max_steps", "100000", "--set", "train.save_steps=2",
    )  # fmt: skip
    two_processes.start(COMMAND, str(tmp_path), words)
    wait(lambda: any(tmp_path.glob("runs/*/checkpoints/step-*")))
    for _ in range(2):  # a scheduler signals them, and so does the launcher
        for each in two_processes.running:
            os.kill(each.pid, signal.SIGTERM)
    both = two_processes.results()
    assert [code for code, *_ in both] == [130, 130], both
    (run,) = tmp_path.glob("runs/simcse-*")
    last = both[0][2].splitlines()[-1]
    step = int(last.removeprefix("stopped after step ").split(";")[0])
    assert Checkpoint.read(run / "checkpoints" / f"step-{step}").values["step"] == step
    assert "stopped" not in both[1][2]


ONE_STEP = (
    "--dev", "none", "--train.batch_size", "8", "--train.device", "cpu", "--model.dropout", "0",
    "--train.precision", "fp32", "--train.max_steps", "1", "--quiet", "--out",
)  # fmt: skip


@pytest.mark.slow
def test_negatives_and_rounds_are_the_same(texts: Path, tmp_path: Path, done: Done) -> None:
    lines = texts.read_text(encoding="utf-8").split("\n")
    articles = [
        {"id": n, "title": lines[n], "paras": [lines[n : n + 20]]} for n in range(0, 600, 20)
    ]
    (tmp_path / "articles.jsonl").write_text("\n".join(map(json.dumps, articles)) + "\n")

    def runs(name: str, *words: str) -> list[Path]:
        folders = [tmp_path / f"{name}-{ranks}" for ranks in (1, 2)]
        one, two = (
            done("train", *words, *ONE_STEP, str(folder), ranks=ranks)[1]
            for ranks, folder in enumerate(folders, 1)
        )
        halves(two, one)
        return folders

    retrieved = ("--negatives", "retrieved", "--negatives.retrieved.knn", "6")
    near, other = (
        Checkpoint.read(folder / "checkpoints/step-1").part("part.negatives.retrieved")["near"]
        for folder in runs("retrieved", "--data", str(texts), *retrieved)
    )
    assert torch.equal(near, other) and len(near) > 600
    mined = ("--data", "articles.jsonl", "--positives", "idc", "--positives.idc.rounds", "1")
    pairs, same = (
        (folder / "rounds/1/checksums.json").read_bytes() for folder in runs("mined", *mined)
    )
    assert pairs == same
