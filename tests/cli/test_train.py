"""``cse train`` from beginning to end."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from cse_cli.terminal.progress import LineReporter
from tests.fixtures.command_line import Cse, refused

SHORT = ("--train.batch_size", "8", "--train.device", "cpu", "--train.precision", "fp32")


def short(sentences: Path, out: Path, *more: str) -> tuple[str, ...]:
    return ("train", "--data", str(sentences), "--dev", "none", "--out", str(out), *SHORT, *more)


def test_a_run_tells_what_it_does_and_what_comes_next(
    cse: Cse, sentences: Path, tmp_path: Path
) -> None:
    out = tmp_path / "runs" / "first"
    said = cse(*short(sentences, out))
    assert said.code == 0, said.err
    for words in ("24 rows", "1 blank", "each step encodes online: anchor + positive",
                  "step 3 of 3: loss "):  # fmt: skip
        assert words in said.err
    assert f"model: {out / 'model'}" in said.out
    assert f"cse eval {out}" in said.out
    assert (out / "model" / "modules.json").is_file()
    assert [json.loads(line)["step"] for line in (out / "metrics.jsonl").open()] == [1, 2, 3]


def test_quiet_prints_the_folder_and_json_one_object(
    cse: Cse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On synthetic texts, which are called so, into folders named by recipe and time."""
    monkeypatch.chdir(tmp_path)
    words = ("train", "-r", "simcse", "--data.limit", "24", "--dev", "none", *SHORT)
    said = cse(*words, "--train.max_steps", "1", "--quiet")
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith("runs/simcse-") and said.out.count("\n") == 1
    assert (tmp_path / said.out.strip() / "run.toml").is_file()
    said = cse(*words, "--train.max_steps", "1", "--json")
    assert (said.code, said.err) == (0, "")
    outcome = json.loads(said.out)
    assert outcome["steps"] == outcome["step"] == 1
    assert Path(outcome["model"]).is_dir()
    assert any("24 rows" in message for message in outcome["messages"])
    assert "synthetic" in said.out and "\x1b[" not in said.out


def test_an_interrupted_run(
    cse: Cse, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says how to go on, leaves no model, and begins again where its checkpoint is cut short."""
    out = tmp_path / "run"
    words = short(sentences, out, "--train.save_steps", "1")
    with monkeypatch.context() as patch:
        patch.setattr(LineReporter, "step", lambda self, step: signal.raise_signal(signal.SIGINT))
        said = cse(*words)
    assert (said.code, said.out) == (130, "")
    last = f"stopped after step 1; continue with `cse train --resume {out}`"
    assert said.errors[-1] == last and not (out / "model").exists()
    refused(cse("eval", str(out)), "run")
    for file in out.glob("checkpoints/*/*.safetensors"):
        file.write_bytes(file.read_bytes()[:1000])
    said = cse("train", "--resume", str(out))
    assert said.code == 0 and "delete this folder to resume from the one before it" in said.err
    assert "resuming after step 0" in said.err and (out / "model").is_dir()


def test_what_is_trained_from_the_starter_is_known_as_such_however_often(
    cse: Cse, sentences: Path, tmp_path: Path
) -> None:
    model = "starter"
    for name in ("first", "second"):
        out = str(tmp_path / name)
        words = ("train", "--recipe", "consert", "--model", model, "--data", str(sentences))
        said = cse(*words, "--train.max_steps", "1", "--dev", "none", "--out", out, "-q")
        assert said.code == 0, said.err
        assert "lr = 0.0001" in (tmp_path / name / "run.toml").read_text(encoding="utf-8")
        model = out
