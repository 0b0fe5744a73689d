"""``cse train`` from beginning to end."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest

from tests.fixtures.command_line import Cse, call_installed, refused, started

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
    cse: Cse, sentences: Path, tmp_path: Path
) -> None:
    said = cse(*short(sentences, tmp_path / "quiet", "--quiet", "--train.max_steps", "1"))
    assert (said.code, said.out, said.err) == (0, f"{tmp_path / 'quiet'}\n", "")
    said = cse(*short(sentences, tmp_path / "json", "--json", "--train.max_steps", "1"))
    assert (said.code, said.err) == (0, "")
    outcome = json.loads(said.out)
    assert outcome["steps"] == outcome["step"] == 1
    assert Path(outcome["model"]).is_dir()
    assert any("24 rows" in message for message in outcome["messages"])


def test_without_out_the_folder_is_named_by_recipe_and_time(
    cse: Cse, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("train", "-r", "simcse", "-d", str(sentences), "--dev", "none", "-q", *SHORT)
    said = cse(*words, "--train.max_steps", "1")
    assert said.code == 0
    assert said.out.startswith("runs/simcse-")
    assert (tmp_path / said.out.strip() / "run.toml").is_file()


def test_a_folder_that_holds_a_run_is_refused(cse: Cse, sentences: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = short(sentences, out, "-q", "--train.max_steps", "1")
    assert cse(*words).code == 0
    refused(cse(*words), "already holds a run", str(out), "--resume")
    refused(cse("train", "--resume", str(out)), "finished", str(out))


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was interrupted after some steps."""
    folder = tmp_path_factory.mktemp("stopped")
    texts = folder / "texts.txt"
    texts.write_text("\n".join(f"sentence number {n}" for n in range(64)), encoding="utf-8")
    words = short(texts, folder / "run", "--train.max_steps", "5000", "--set", "train.save_steps=2")
    with started(*words, cwd=folder, env={}) as run:
        deadline = time.monotonic() + 120
        while not list((folder / "run" / "checkpoints").glob("step-*")):
            assert time.monotonic() < deadline and run.poll() is None
            time.sleep(0.1)
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=60)
    assert run.returncode == 130, err
    assert out == ""
    last = err.splitlines()[-1]
    assert last.startswith("stopped after step ")
    assert last.endswith(f"continue with `cse train --resume {folder / 'run'}`")
    return folder / "run"


def test_an_interrupted_run_says_how_to_go_on(stopped: Path) -> None:
    assert not (stopped / "model").exists()


def test_a_checkpoint_cut_short_is_refused(cse: Cse, stopped: Path, tmp_path: Path) -> None:
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(stopped, copy)
    for file in copy.glob("checkpoints/*/*.safetensors"):
        file.write_bytes(file.read_bytes()[:1000])
    refused(cse("train", "--resume", str(copy)), "checkpoint", "delete this folder")


def test_eval_of_an_unfinished_run_says_how_to_finish_it(cse: Cse, stopped: Path) -> None:
    said = cse("eval", str(stopped))
    assert said.code == 2
    assert len(said.errors) == 1
    assert "run" in said.err


def test_synthetic_texts_are_called_so(tmp_path: Path) -> None:
    words = ("train", "--train.max_steps", "1", "--dev", "none", "--out", "run", *SHORT)
    said = call_installed(*words, cwd=tmp_path)
    assert said.code == 0, said.err
    assert "synthetic" in said.err
    assert "\x1b[" not in said.err + said.out


def test_what_is_trained_from_the_starter_is_known_as_such_however_often(
    cse: Cse, sentences: Path, tmp_path: Path
) -> None:
    model = "starter"
    for name in ("first", "second", "third"):
        out = str(tmp_path / name)
        words = ("train", "--recipe", "consert", "--model", model, "--data", str(sentences))
        said = cse(*words, "--train.max_steps", "1", "--dev", "none", "--out", out, "-q")
        assert said.code == 0, said.err
        assert "lr = 0.0001" in (tmp_path / name / "run.toml").read_text(encoding="utf-8")
        model = out
