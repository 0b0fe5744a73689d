"""``cse bench`` from beginning to end, and the time that a plan tells by it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from cse_bench.kept import measurements

from tests.cli.test_start_up import HEAVY, SCRIPT
from tests.fixtures.command_line import Cse, call_installed, refused, started
from tests.fixtures.tiny import make_encoder

WORK = ("--train.batch_size", "8", "--train.device", "cpu")
SHORT = (*WORK, "--steps", "1", "--rounds", "1")


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_encoder(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CSE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "bench.json"


def chosen(sentences: Path, encoder: str) -> tuple[str, ...]:
    return ("--recipe", "simcse", "--model", encoder, "--data", str(sentences))


def everything(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_the_installed_command_shows_a_table_and_keeps_it(
    sentences: Path, encoder: str, tmp_path: Path, cache: Path
) -> None:
    told = call_installed("bench", *chosen(sentences, encoder), *SHORT, cwd=tmp_path)
    assert told.code == 0, told.err
    for words in ("sentences/s", "real tokens/s", "ms a step", "share of the floor", "peak memory",
                  "matrix products", "dropout", "padding avoided", "batches of 8",
                  "train.precision = auto takes "):  # fmt: skip
        assert words in told.out
    assert re.search(r"┃ fp32 +┃ bf16", told.out)
    lines = told.err.splitlines()
    assert lines[0] == "fp32 and bf16 on cpu, rounds: 1, steps of a round: 1"
    assert lines[1] == "measuring: 0 of 6"
    assert lines[-1] == f"kept in {cache}"
    assert all(line.startswith("measuring: ") for line in lines[1:-1])
    written = ["cache", "cache/bench.json", "cache/bench.lock", "sentences.txt"]
    assert everything(tmp_path) == written
    (kept,) = measurements()
    assert set(kept.seconds) == {"fp32", "bf16"} and kept.gain is not None
    assert (kept.recipe, kept.batch_size, kept.hidden) == ("simcse", 8, 32)


def test_json_is_one_object(cse: Cse, sentences: Path, encoder: str, cache: Path) -> None:
    words = ("bench", *chosen(sentences, encoder), *SHORT, "--precision", "fp32", "--json")
    told = cse(*words)
    assert (told.code, told.err) == (0, "")
    found: dict[str, Any] = json.loads(told.out)
    assert list(found["precisions"]) == ["fp32"]
    fp32 = found["precisions"]["fp32"]
    assert sum(fp32["where"].values()) == pytest.approx(1.0)
    assert fp32["sentences_per_second"]["median"] > 0
    assert 0 < fp32["share_of_floor"]["median"]
    assert (found["gain"], found["auto"], found["batch_size"]) == (None, None, 8)
    assert found["kept"] == str(cache)


def test_off_keeps_nothing(
    cse: Cse, sentences: Path, encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CSE_CACHE", "off")
    told = cse("bench", *chosen(sentences, encoder), *SHORT, "--precision", "fp32")
    assert told.code == 0
    assert told.errors[-1] == "kept nowhere"
    assert everything(tmp_path) == ["sentences.txt"]


def test_a_cache_that_cannot_be_written_is_a_warning(
    cse: Cse, sentences: Path, encoder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CSE_CACHE", str(sentences))
    told = cse("bench", *chosen(sentences, encoder), *SHORT, "--precision", "fp32", "--json")
    assert told.code == 0
    assert json.loads(told.out)["kept"] is None
    assert told.err.startswith("warning: CSE_CACHE")
    assert len(told.errors) == 1


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
    told = cse("bench", "--loss", "infonce", "--help")
    assert told.code == 0
    assert "--loss.infonce.temperature" in told.out
    assert "--precision" in told.out


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
    assert err.splitlines()[-1] == "interrupted: nothing is kept"
    assert not list(temporary.glob("cse-bench-*"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["sentences.txt", "temporary"]


def test_a_plan_tells_the_time_only_by_a_measurement(
    cse: Cse, sentences: Path, encoder: str, cache: Path
) -> None:
    work = chosen(sentences, encoder)
    plan = ("train", *work, *WORK, "--dry-run")
    assert "time:" not in cse(*plan).out
    assert json.loads(cse(*plan, "--json").out)["time"] is None
    assert cse("bench", *work, *SHORT).code == 0
    told = cse(*plan)
    (line,) = (line for line in told.out.splitlines() if line.startswith("time: "))
    assert re.match(r"time: about \d+ s: 3 steps at [\d.,]+ sentences/s in (fp32|bf16), ", line)
    assert re.search(r"measured by cse bench on \d{4}-\d\d-\d\d; ", line)
    script = [sys.executable, "-c", SCRIPT, ",".join(HEAVY), *plan]
    done = subprocess.run(script, capture_output=True, text=True, timeout=120)
    assert line in done.stdout.splitlines()
    assert done.stderr.splitlines()[-1] == "loaded:"
    seconds = json.loads(cse(*plan, "--json").out)["time"]["seconds"]
    assert 0 < seconds < 60
    assert "time:" not in cse(*plan, "--train.threads", "3").out
    assert "time:" not in cse("train", "--data", str(sentences), *WORK, "--dry-run").out
    cache.write_text(cache.read_text()[:-20])
    assert "time:" not in cse(*plan).out


def test_a_run_takes_what_was_measured_and_a_resumed_one_what_it_recorded(
    cse: Cse, sentences: Path, encoder: str, tmp_path: Path, cache: Path
) -> None:
    work = chosen(sentences, encoder)
    assert cse("bench", *work, *SHORT).code == 0
    content = json.loads(cache.read_text())

    def gain(value: float) -> None:
        content["measurements"][0]["gain"] = value
        cache.write_text(json.dumps(content))

    gain(2.1)
    out = tmp_path / "run"
    told = cse("train", *work, *WORK, "--dev", "none", "--out", str(out))
    assert told.code == 0, told.err
    why = "measured here: bf16 2.10 times fp32"
    assert f"on cpu in bf16: {why}" in told.err
    assert any(line.startswith("about ") and "3 steps" in line for line in told.errors)
    recorded = tomllib.loads((out / "run.toml").read_text())["run"]
    assert (recorded["precision"], recorded["why"]) == ("bf16", why)
    gain(0.5)
    (out / "result.json").unlink()
    told = cse("train", "--resume", str(out))
    assert told.code == 0, told.err
    assert "on cpu in bf16" in told.err
    told = cse("train", *work, *WORK, "--dev", "none", "--out", str(tmp_path / "other"))
    assert "on cpu in fp32: measured here: bf16 0.50 times fp32" in told.err
