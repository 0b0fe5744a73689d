"""``cse bench`` from beginning to end."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.command_line import Cse, call_installed, refused, started
from tests.fixtures.tiny import make_encoder

WORK = ("--train.batch_size", "8", "--train.device", "cpu")
SHORT = (*WORK, "--steps", "1", "--rounds", "1")


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_encoder(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(autouse=True)
def no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CSE_CACHE", "off")


def chosen(sentences: Path, encoder: str) -> tuple[str, ...]:
    return ("--recipe", "simcse", "--model", encoder, "--data", str(sentences))


def everything(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_the_installed_command_shows_a_table_and_advises(
    sentences: Path, encoder: str, tmp_path: Path
) -> None:
    printed = call_installed("bench", *chosen(sentences, encoder), *SHORT, cwd=tmp_path)
    assert printed.code == 0, printed.err
    for words in ("sentences/s", "real tokens/s", "ms a step", "share of the floor", "peak memory",
                  "matrix products", "dropout", "padding avoided", "batches of 8",
                  " times as fast as fp32 here: "):  # fmt: skip
        assert words in printed.out
    assert re.search(r"┃ fp32 +┃ bf16", printed.out)
    lines = printed.err.splitlines()
    assert lines[0] == "fp32 and bf16 on cpu, rounds: 1, steps of a round: 1"
    assert lines[1] == "measuring: 0 of 6"
    assert all(line.startswith("measuring: ") for line in lines[1:])
    assert everything(tmp_path) == ["sentences.txt"]


def test_json_is_one_object(cse: Cse, sentences: Path, encoder: str) -> None:
    words = ("bench", *chosen(sentences, encoder), *SHORT, "--precision", "fp32", "--json")
    printed = cse(*words)
    assert (printed.code, printed.err) == (0, "")
    found: dict[str, Any] = json.loads(printed.out)
    assert list(found["precisions"]) == ["fp32"]
    fp32 = found["precisions"]["fp32"]
    assert sum(fp32["where"].values()) == pytest.approx(1.0)
    assert fp32["sentences_per_second"]["median"] > 0
    assert 0 < fp32["share_of_floor"]["median"]
    assert (found["gain"], found["advice"], found["batch_size"]) == (None, None, 8)
    assert found["auto"] in ("fp32", "bf16")


@pytest.mark.parametrize(
    "case",
    [
        ("--precision fp16", "fp16", "100 times slower", "--precision"),
        ("--precision fp8", "fp8", "fp32", "--precision"),
        ("--precision auto", "auto", "fp32,bf16"),
        ("--precision ,", "--precision", "fp32,bf16"),
        ("--steps 0", "--steps", "1"),
        ("--rounds none", "--rounds", "integer"),
        ("--loss infonc", "did you mean infonce?"),
        ("--train.lr fast", "train.lr", "number"),
        ("--data nothere.txt", "nothere.txt", "no such file"),
        ("--train.device rocket", "train.device", "rocket"),
        ("--lr 3", "--lr", "--train.lr"),
        ("--dev none", "--dev"),
    ],
    ids=lambda case: case[0],
)
def test_mistakes(cse: Cse, tmp_path: Path, case: tuple[str, ...]) -> None:
    before = everything(tmp_path)
    refused(cse("bench", *case[0].split()), *case[1:])
    assert everything(tmp_path) == before


def test_help_shows_the_options_of_the_chosen_parts(cse: Cse) -> None:
    printed = cse("bench", "--loss", "infonce", "--help-all")
    assert printed.code == 0
    assert "--loss.infonce.temperature" in printed.out
    assert "--precision" in printed.out


def test_an_interrupt_leaves_nothing(sentences: Path, encoder: str, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    words = ("bench", *chosen(sentences, encoder), *WORK, "--steps", "100000")
    with started(*words, cwd=tmp_path, env={"TMPDIR": str(temporary)}) as run:
        assert run.stderr is not None
        assert any(line.startswith("measuring") for line in run.stderr)
        assert list(temporary.glob("cse-bench-*"))
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=60)
    assert (run.returncode, out) == (130, "")
    assert err.splitlines()[-1] == "interrupted: no measurement was completed"
    assert not list(temporary.glob("cse-bench-*"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["sentences.txt", "temporary"]
