"""``cse bench`` from beginning to end."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.command_line import Cse, refused

WORK = ("--train.batch_size", "8", "--train.device", "cpu")
SHORT = (*WORK, "--steps", "1", "--rounds", "1")


def chosen(sentences: Path, encoder: str) -> tuple[str, ...]:
    return ("--recipe", "simcse", "--model", encoder, "--data", str(sentences))


def everything(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_table_and_advice_are_shown(
    cse: Cse, sentences: Path, encoder: str, tmp_path: Path
) -> None:
    before = everything(tmp_path)
    printed = cse("bench", *chosen(sentences, encoder), *SHORT)
    assert printed.code == 0, printed.err
    for words in ("sentences/s", "real tokens/s", "ms a step", "peak memory", "matrix products",
                  "dropout", "batches of 8", " times as fast as fp32 here: ",
                  "limit in bf16: all but its matrix products is "):  # fmt: skip
        assert words in printed.out
    assert re.search(r"┃ fp32 +┃ bf16", printed.out)
    lines = printed.err.splitlines()
    assert lines[0] == "fp32 and bf16 on cpu, rounds: 1, steps of a round: 1"
    assert lines[1] == "measuring: 0 of 6"
    assert all(line.startswith("measuring: ") for line in lines[1:])
    assert everything(tmp_path) == before


def test_json_is_one_object(cse: Cse, sentences: Path, encoder: str) -> None:
    words = ("bench", *chosen(sentences, encoder), *SHORT, "--precision", "fp32", "--json")
    printed = cse(*words)
    assert (printed.code, printed.err) == (0, "")
    found: dict[str, Any] = json.loads(printed.out)
    assert list(found["precisions"]) == ["fp32"]
    fp32 = found["precisions"]["fp32"]
    assert sum(fp32["where"].values()) == pytest.approx(1.0)
    assert fp32["sentences_per_second"]["median"] > 0
    assert (found["gain"], found["advice"], found["batch_size"]) == (None, None, 8)
    assert found["auto"] in ("fp32", "bf16")


def test_mistakes(cse: Cse, sentences: Path, tmp_path: Path) -> None:
    before = everything(tmp_path)
    for typed, *words in (
        ("--precision fp8", "fp8", "fp32", "--precision"),
        ("--precision auto", "not a precision to measure", "fp32,bf16"),
        ("--precision ,", "--precision", "fp32,bf16"),
        ("--steps 0", "--steps", "1"),
        ("--rounds none", "--rounds", "integer"),
        ("--loss infonc", "did you mean infonce?"),
        ("--data nothere.txt", "nothere.txt", "no such file"),
        ("--train.device rocket", "train.device", "rocket"),
        ("--lr 3", "--lr", "--train.lr"),
        ("--dev none", "--dev"),
    ):
        refused(cse("bench", "--data", str(sentences), *typed.split()), *words)
    assert everything(tmp_path) == before


def test_an_interrupt_leaves_nothing(
    cse: Cse, sentences: Path, encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        assert list(tmp_path.glob("cse-session-*"))
        raise KeyboardInterrupt

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("cse_bench.measure._timed", interrupted)
    before = everything(tmp_path)
    printed = cse("bench", *chosen(sentences, encoder), *SHORT)
    assert (printed.code, printed.out) == (130, "")
    assert printed.errors[-1] == "interrupted: no measurement was completed"
    assert everything(tmp_path) == before
