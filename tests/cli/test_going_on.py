"""``cse train`` from beginning to end: what it prints, and runs that are stopped and go on."""

import json
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from cse_testkit import shared_encoder

from cse_cli.models.processes import check_launch
from cse_cli.terminal.progress import LineReporter
from cse_cli.training.running import _new_folder, beside_start
from cse_core.errors import CseError
from tests.fixtures.command_line import Cse, refused
from tests.fixtures.parts import compose

QUICK = ("--train.batch_size", "6", "--train.max_steps", "4", "--train.log_steps", "1",
         "--train.lr", "1e-3", "--model.max_length", "16", "--train.device", "cpu")  # fmt: skip


def training(data: Path | str, *words: str, model: Path | None = None) -> tuple[str, ...]:
    """Return what trains a tiny encoder."""
    return ("train", "--data", str(data), "--model", str(model or shared_encoder()), *words)


def stopped_after(cse: Cse, patch: pytest.MonkeyPatch, step: int, *words: str) -> None:
    with patch.context() as inside:
        stop = lambda self, done: done == step and signal.raise_signal(signal.SIGTERM)  # noqa: E731
        inside.setattr(LineReporter, "step", stop)
        assert cse(*words).code == 130


def test_what_a_run_reads_may_not_change(
    cse: Cse, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dev, run = tmp_path / "dev.tsv", str(tmp_path / "run")
    model = Path(shutil.copytree(shared_encoder(), tmp_path / "encoder"))
    dev.write_text("sentence1\tsentence2\tscore\na dog\ta boat\t1\na\tb\t2\nc\tc\t3\n")
    words = training(sentences, "--dev", str(dev), *QUICK, "--out", run, model=model)
    stopped_after(cse, monkeypatch, 2, *words)
    for file, where in (
        (sentences, "data.path"),
        (dev, "train.dev: dev.tsv"),
        (model / "tokenizer.json", "model.name: tokenizer.json"),
        (model / "config.json", "model.name: config.json"),
    ):
        before = file.read_text(encoding="utf-8")
        file.write_text(before.replace("boat", "moat").replace("{", "{ ", 1), encoding="utf-8")
        refused(cse("train", "--resume", run, "-q"), f"{where}: has changed since the run started")
        file.write_text(before, encoding="utf-8")
    assert cse("train", "--resume", run).code == 0


def test_one_command_begins_goes_on_and_ends(
    cse: Cse, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "my run"
    words = training(sentences, "--dev", "none", *QUICK, "--resume", "auto")
    refused(cse(*words), "--resume", "--out")
    words = (*words, "--out", str(run))
    stopped_after(cse, monkeypatch, 2, *words)
    refused(cse(*words, "--train.lr", "2e-3"), "train.lr", "was 0.001 when the run began")
    assert cse(*words, "--dry-run").code == 0
    said = cse(*words)
    assert said.code == 0 and "resuming after step 2" in said.err
    assert f"cse search '{run}'" in said.out, "what is printed can be typed"
    before = sorted(run.rglob("*"))
    said = cse(*words)
    assert (said.code, said.out) == (0, f"run '{run}' has already finished\n")
    assert sorted(run.rglob("*")) == before
    shutil.rmtree(run / "checkpoints")
    assert json.loads(cse(*words, "--json").out)["steps"] == 4


def test_processes_that_would_train_alone_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS", "SLURM_STEP_NUM_TASKS",
             "SLURM_PROCID", "SLURM_STEP_ID", "ENVIRONMENT", "WORLD_SIZE", "RANK")  # fmt: skip
    srun = {"SLURM_NTASKS": "2", "SLURM_PROCID": "1"}
    batch = {"SLURM_NTASKS": "2", "SLURM_PROCID": "0", "ENVIRONMENT": "BATCH"}
    cases: tuple[tuple[dict[str, str], bool], ...] = (
        (srun, True), ({"OMPI_COMM_WORLD_SIZE": "4"}, True), ({"PMI_SIZE": "2"}, True),
        ({**batch, "SLURM_STEP_ID": "0"}, True), (batch, False), ({"SLURM_NTASKS": "2"}, False),
        ({**srun, "SLURM_NTASKS": "1"}, False), ({**srun, "WORLD_SIZE": "1"}, False),
        ({**srun, "WORLD_SIZE": "2", "RANK": "1"}, False),
    )  # fmt: skip
    for given, wanted in cases:
        with monkeypatch.context() as patch:
            for name in names:
                patch.delenv(name, raising=False)
            for name, value in given.items():
                patch.setenv(name, value)
            try:
                check_launch()
                assert not wanted, given
            except CseError as error:
                assert wanted and "torchrun --nproc-per-node" in str(error), given


def test_two_runs_of_one_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(time, "strftime", lambda form: "now")
    with _new_folder(compose(None)) as one, _new_folder(compose(None)) as other:
        assert (str(one), str(other)) == ("runs/infonce-now", "runs/infonce-now-2")
        (other / "run.toml").touch()
    assert [path.name for path in Path("runs").iterdir()] == ["infonce-now-2"], "not the empty one"


def test_a_signal_leaves_no_unfinished_file(
    cse: Cse, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cse_cli.models.encoding import TextEncoder

    def blocks(self: TextEncoder, texts: Any, **options: Any) -> Any:
        yield from ()
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(TextEncoder, "blocks", blocks)
    before = sorted(tmp_path.iterdir())
    assert cse("encode", "starter", str(sentences), "--out", str(tmp_path / "v.npy")).code == 130
    assert sorted(tmp_path.iterdir()) == before


def test_an_undefined_score_chooses_nothing(cse: Cse, sentences: Path, tmp_path: Path) -> None:
    dev, run = tmp_path / "dev.tsv", tmp_path / "run"
    dev.write_text("sentence1\tsentence2\tscore\na\ta\t1\na\ta\t2\na\ta\t3\n")
    said = cse(*training(sentences, "--dev", str(dev), *QUICK, "--out", str(run)))
    assert said.code == 0 and "kept: step 4, the last" in said.out
    assert f"  cse index {run} " in said.out and f"  cse eval {run} --pairs PAIRS.tsv" in said.out
    assert "dev.spearman is not defined at step 4, so it chooses nothing" in said.err
    said = cse(*training(sentences, "--dev", "none", *QUICK), "--no-plugin", "cse-search")
    assert "  cse encode " in said.out and "cse index" not in said.out
    assert "NaN" not in (run / "metrics.jsonl").read_text() + (run / "result.json").read_text()


def test_the_end_compares_the_chosen_score_with_the_start(
    cse: Cse, sentences: Path, tmp_path: Path
) -> None:
    dev, run = tmp_path / "dev.tsv", tmp_path / "run"
    dev.write_text("sentence1\tsentence2\tscore\na dog\ta cat\t1\nb\tb c\t2\nd\te\t3\n")
    words = training(sentences, "--dev", str(dev), *QUICK, "--train.lr", "0")
    said = cse(*words, "--out", str(run))
    assert "step 0: dev.spearman" in said.err
    assert ", the same as the start\n" in said.out
    result = json.loads((run / "result.json").read_text(encoding="utf-8"))
    assert result["start"] == result["score"]
    assert beside_start(80.0, 70.0) == ", better than the start (70.00)"
    assert beside_start(70.0, 80.0).startswith(", worse than the start (80.00): a lower --train.lr")
    assert beside_start(70.0, None) == ""


def test_what_quiet_and_json_print(
    cse: Cse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On synthetic texts, which are called so, into folders named by recipe and time."""
    monkeypatch.chdir(tmp_path)
    words = training("starter", "-r", "simcse", "--data.limit", "24", "--dev", "none", *QUICK)
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
    words = training(sentences, "--dev", "none", *QUICK, "--train.save_steps", "1")
    with monkeypatch.context() as patch:
        patch.setattr(LineReporter, "step", lambda self, step: signal.raise_signal(signal.SIGINT))
        said = cse(*words, "--out", str(out))
    assert (said.code, said.out) == (130, "")
    last = f"stopped after step 1; continue with `cse train --resume {out}`"
    assert said.errors[-1] == last and not (out / "model").exists()
    refused(cse("eval", str(out)), "run")
    for file in out.glob("checkpoints/*/*.safetensors"):
        file.write_bytes(file.read_bytes()[:1000])
    said = cse("train", "--resume", str(out))
    assert said.code == 0 and "delete this folder to resume from the one before it" in said.err
    assert "resuming after step 0" in said.err and (out / "model").is_dir()
