"""Processes of torchrun share what is encoded: the same results, each encodes about half."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from cse_core.training.checkpoint import Checkpoint
from tests.fixtures.ranks import two_ranks

ROOT = Path(__file__).parents[2]
WORDS = "the a late old train boat garden judge planet violin runs sleeps under near of in".split()
LABELS = ("good", "bad")


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    draw = random.Random(5)
    lines = [" ".join(draw.choices(WORDS, k=draw.randint(1, 30))) for _ in range(700)]
    path = tmp_path / "texts.txt"
    path.write_text("\n".join([*lines, "", lines[3]]) + "\n", encoding="utf-8")
    return path


@contextmanager
def running(
    folder: Path, *words: str, ranks: list[dict[str, str]], **more: str
) -> Iterator[list[subprocess.Popen[str]]]:
    """The processes of a command as they run; they do not outlive the block."""
    env = {
        **os.environ, "HF_HUB_OFFLINE": "1", "CSE_CACHE": "off", "COLUMNS": "160",
        "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **more,
    }  # fmt: skip
    script = [sys.executable, "-m", "tests.fixtures.shared_command"]
    there = [
        subprocess.Popen(
            [*script, str(folder / f"count-{len(ranks)}-{number}"), *words], cwd=folder,
            env={**env, **rank}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for number, rank in enumerate(ranks)
    ]  # fmt: skip
    try:
        yield there
    finally:
        for each in there:
            each.kill()
            each.wait()


def done(folder: Path, *words: str, ranks: int = 2, **more: str) -> tuple[str, list[int]]:
    """Run a command; return what the first process printed, and how many rows each encoded."""
    own = two_ranks() if ranks == 2 else [{}]
    with running(folder, *words, ranks=own, **more) as there:
        said = [each.communicate(timeout=240) for each in there]
        assert [each.returncode for each in there] == [0] * ranks, said
    assert not any(out for out, _ in said[1:]), "the first process alone prints"
    counts = [folder / f"count-{ranks}-{number}" for number in range(ranks)]
    return said[0][0], [int(count.read_text()) for count in counts]


def halves(two: list[int], one: list[int]) -> None:
    """Check that two processes encoded what one does, each about half."""
    assert sum(two) == sum(one)
    assert min(two) > 0.4 * sum(one), two


@pytest.mark.slow
@pytest.mark.parametrize("name", ["vectors.npy", "vectors.jsonl"])
def test_encode_writes_the_same_bytes(texts: Path, tmp_path: Path, name: str) -> None:
    words = ("encode", "starter", str(texts), "--out")
    _, one = done(tmp_path, *words, f"one-{name}", ranks=1)
    _, two = done(tmp_path, *words, f"two-{name}")
    assert (tmp_path / f"two-{name}").read_bytes() == (tmp_path / f"one-{name}").read_bytes()
    halves(two, one)


@pytest.mark.slow
def test_search_finds_the_same(texts: Path, tmp_path: Path) -> None:
    words = ("search", "starter", "a late train", "garden", "--data", str(texts), "--json")
    expected, one = done(tmp_path, *words, ranks=1)
    found, two = done(tmp_path, *words)
    assert json.loads(found) == json.loads(expected)
    halves(two, one)


@pytest.mark.slow
def test_eval_has_the_same_scores(texts: Path, tmp_path: Path) -> None:
    lines = texts.read_text(encoding="utf-8").split("\n")[:240]
    pairs = [f"{a}\t{b}\t{n % 6}" for n, (a, b) in enumerate(zip(lines, lines[1:], strict=False))]
    (tmp_path / "pairs.tsv").write_text("\n".join(["sentence1\tsentence2\tscore", *pairs]) + "\n")
    labelled = [f"{LABELS['train' in line]}\t{line * 9}" for line in lines]
    (tmp_path / "labelled.tsv").write_text("\n".join(["label\ttext", *labelled]) + "\n")
    articles = [
        {"id": n, "title": lines[n], "paras": [lines[n + 1 : n + 9]]} for n in range(0, 200, 10)
    ]
    (tmp_path / "docs.jsonl").write_text("\n".join(map(json.dumps, articles)) + "\n")
    words = (
        "eval", "starter", "--pairs", "pairs.tsv", "--labelled", "labelled.tsv",
        "--documents", "docs.jsonl", "--max-length", "24", "--no-baselines", "--json",
    )  # fmt: skip
    expected, one = done(tmp_path, *words, ranks=1)
    found, two = done(tmp_path, *words)
    scores: dict[str, Any] = json.loads(found)
    assert scores == json.loads(expected) and len(scores["results"]) == 3
    halves(two, one)


@pytest.mark.slow
@pytest.mark.parametrize("killed", [0, 1])
def test_a_killed_process_ends_the_other_and_leaves_nothing_half_written(
    texts: Path, tmp_path: Path, killed: int
) -> None:
    words = ("encode", "starter", str(texts), "--out", "vectors.npy", "--batch-tokens", "64")
    with running(tmp_path, *words, ranks=two_ranks(), CSE_TEST_SLOW="0.05") as both:
        deadline = time.monotonic() + 120
        while not (tmp_path / f"count-2-{killed}").exists():
            assert time.monotonic() < deadline
            assert [each.poll() for each in both] == [None, None]
            time.sleep(0.05)
        both[killed].kill()
        out, err = both[1 - killed].communicate(timeout=60)
    assert both[1 - killed].returncode == 2
    assert out == "" and err.splitlines() == [
        "error: another process of this run has ended; what it printed says why; start all "
        "processes again"
    ]
    assert not (tmp_path / "vectors.npy").exists()
    if killed:  # the other one had time to clear up
        assert not list(tmp_path.glob(".vectors*"))


@pytest.mark.parametrize("failing", ["0", pytest.param("1", marks=pytest.mark.slow)])
def test_an_error_in_one_process_ends_all_with_one_line(
    texts: Path, tmp_path: Path, failing: str
) -> None:
    words = ("encode", "starter", str(texts), "--out", "vectors.npy", "--batch-tokens", "64")
    with running(tmp_path, *words, ranks=two_ranks(), CSE_TEST_FAILS=failing) as both:
        said = [each.communicate(timeout=120) for each in both]
        assert [each.returncode for each in both] == [2, 2], said
    lines = [err for _, err in said]
    assert lines[int(failing)] == "error: test: this process was made to fail\n"
    assert lines[1 - int(failing)] == ""
    assert not list(tmp_path.glob("*vectors*"))


@pytest.mark.slow
def test_a_mistake_is_one_line_of_the_first_process(tmp_path: Path) -> None:
    with running(tmp_path, "encode", "nowhere/x", "--text", "a", ranks=two_ranks()) as both:
        said = [each.communicate(timeout=120) for each in both]
        assert [each.returncode for each in both] == [2, 2], said
    assert len(said[0][1].splitlines()) == 1 and said[1] == ("", "")


def trained(folder: Path, out: str, *words: str, ranks: int) -> list[int]:
    """Train a run of one step; return how many rows each process encoded for the search."""
    fixed = (
        "--dev", "none", "--train.batch_size", "8", "--train.device", "cpu", "--model.dropout", "0",
        "--train.precision", "fp32", "--train.max_steps", "1", "--quiet", "--out", out,
    )  # fmt: skip
    with running(
        folder, "train", *words, *fixed, ranks=two_ranks() if ranks == 2 else [{}]
    ) as there:
        said = [each.communicate(timeout=240) for each in there]
        assert [each.returncode for each in there] == [0] * ranks, said
    counts = [folder / f"count-{ranks}-{number}" for number in range(ranks)]
    return [int(count.read_text()) for count in counts]


@pytest.mark.slow
def test_retrieved_negatives_are_the_same(texts: Path, tmp_path: Path) -> None:
    words = ("--data", str(texts), "--negatives", "retrieved", "--negatives.retrieved.knn", "6")
    counts = [trained(tmp_path, f"run-{n}", *words, ranks=n) for n in (1, 2)]
    halves(counts[1], counts[0])
    one, two = (
        Checkpoint.read(tmp_path / f"run-{n}" / "checkpoints" / "step-1").part(
            "part.negatives.retrieved"
        )
        for n in (1, 2)
    )
    assert torch.equal(one["near"], two["near"]) and len(one["near"]) > 600


@pytest.mark.slow
def test_a_round_of_clusters_has_the_same_pairs(texts: Path, tmp_path: Path) -> None:
    lines = texts.read_text(encoding="utf-8").split("\n")
    articles = [
        {"id": n, "title": lines[n], "paras": [lines[n : n + 20]]} for n in range(0, 600, 20)
    ]
    (tmp_path / "articles.jsonl").write_text("\n".join(map(json.dumps, articles)) + "\n")
    words = ("--data", "articles.jsonl", "--positives", "idc", "--positives.idc.rounds", "1")
    counts = [trained(tmp_path, f"run-{n}", *words, ranks=n) for n in (1, 2)]
    halves(counts[1], counts[0])
    one, two = (tmp_path / f"run-{n}" / "rounds" / "1" / "pairs.parquet" for n in (1, 2))
    assert one.read_bytes() == two.read_bytes()
