"""``import cse`` gives what the command line gives: plans, weights, scores, errors."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
from cse_testkit import shared_encoder
from nbclient import NotebookClient

import cse
from cse_cli.terminal.progress import SilentReporter
from tests.fixtures.command_line import Cse
from tests.fixtures.methods import refusal

ROOT = Path(__file__).parents[2]
SHORT = {
    "train.max_steps": 3,
    "train.batch_size": 8,
    "train.eval_steps": 2,
    "train.precision": "fp32",
}
FLAGS = [word for path, value in SHORT.items() for word in (f"--{path}", str(value))]


@pytest.fixture
def pairs(tmp_path: Path) -> str:
    """A few graded pairs: the starter's take longer than all the rest."""
    path = tmp_path / "pairs.tsv"
    lines = ["sentence1\tsentence2\tscore"]
    lines += [f"A boat leaves.\tShip number {n} sails.\t{n % 6}" for n in range(24)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def test_every_name_is_there_and_importing_it_imports_nothing_heavy() -> None:
    heavy = ("torch", "typer", "rich")
    code = f"import cse, sys; dir(cse); print([n for n in {heavy} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert all(hasattr(cse, name) for name in cse.__all__)
    with pytest.raises(AttributeError, match="trian"):
        cse.trian  # type: ignore[attr-defined]  # noqa: B018


def test_plans_and_options(cse_command: Cse, sentences: Path) -> None:
    model = str(shared_encoder())
    chosen: Any = {"aug": "fgsm", "negatives": ["queue"], "loss": "+twins", "seed": 7}
    plan = cse.plan("simcse", model=model, data=sentences, options=SHORT, **chosen)
    typed = "train -r simcse --aug fgsm --negatives queue --loss +twins --seed 7 --dry-run"
    words = [*typed.split(), "--model", model, "--data", str(sentences), *FLAGS]
    assert str(plan).split("\n") == cse_command(*words).out.rstrip("\n").split("\n")
    ours, theirs = plan.to_dict(), json.loads(cse_command(*words, "--json").out)
    del ours["seconds"], theirs["seconds"]  # by the machine's speed at the time
    assert ours == theirs
    given: tuple[dict[str, Any], ...] = (
        {"train": {"lr": 3e-5, "dev": ["none"]}, "loss.infonce.temperature": 0.07},
        {"train.lr": np.float64(3e-5), "train.dev": "none", "data.limit": None,
         "loss": {"infonce": {"temperature": "0.07"}}},
    )  # fmt: skip
    for options in given:
        composition = cse.plan("simcse", data=sentences, options=options).composition
        assert composition.train.lr == 3e-5 and composition.train.dev == ("none",)
        assert composition.data.path == (str(sentences),) and composition.data.limit is None
        (loss,) = composition.of("loss")
        assert getattr(loss.options, "temperature") == 0.07  # noqa: B009


MISTAKES: list[tuple[dict[str, Any], list[str]]] = [
    ({"recipe": "simcsee"}, ["-r", "simcsee"]),
    ({"loss": "twinz"}, ["--loss", "twinz"]),
    ({"options": {"train.lrr": 1}}, ["--train.lrr", "1"]),
    ({"options": {"train.lr": "fast"}}, ["--train.lr", "fast"]),
    ({"data": "nothere.txt"}, ["--data", "nothere.txt"]),
]


def test_a_mistake_has_the_line_of_the_command(cse_command: Cse, sentences: Path) -> None:
    for keywords, words in MISTAKES:
        line = refusal(cse.plan, **{"data": sentences, **keywords})
        data = [] if "data" in keywords else ["--data", str(sentences)]
        printed = cse_command("train", *data, *words, "--dry-run")
        assert (printed.code, printed.err.strip()) == (2, f"error: {line}")
    with pytest.raises(cse.CseError, match="train.lr: must be text, a number"):
        cse.plan(data=sentences, options={"train.lr": object()})
    with pytest.raises(cse.CseError, match="seed cannot change it"):
        cse.train(cse.plan("simcse", data=sentences, options=SHORT), seed=3)
    for name in ("data", "dev"):
        with pytest.raises(cse.CseError, match=f"{name}: is an empty list"):
            cse.plan("simcse", **{name: []})
    for keywords, words in (
        ({"pairs": "nothere.tsv"}, ["--pairs", "nothere.tsv"]),
        ({"data": "nothere"}, ["--data", "nothere"]),
    ):
        line = refusal(cse.evaluate, "starter", **keywords)
        assert cse_command("eval", "starter", *words).err.strip() == f"error: {line}"
    with pytest.raises(cse.CseError, match="unknown option.*did you mean suite"):
        cse.evaluate("starter", suit="sts")
    with pytest.raises(TypeError, match="'train.lr'; options are given by their paths: options="):
        cse.train("simcse", **{"train.lr": 1})


def test_a_run_is_that_of_the_command(
    cse_command: Cse, sentences: Path, tmp_path: Path, pairs: str, capfd: pytest.CaptureFixture[str]
) -> None:
    texts: Any = {"model": shared_encoder(), "data": sentences}
    run = cse.train("simcse", options=SHORT, dev=pairs, out=tmp_path / "here", **texts)
    assert "3 steps" in capfd.readouterr().err
    quiet = tmp_path / "quiet"
    once = {**SHORT, "train.max_steps": 1}
    cse.train("simcse", options=once, dev="none", out=quiet, quiet=True, **texts)
    assert capfd.readouterr() == ("", "")
    words = [*FLAGS, "--dev", pairs, "--out", str(tmp_path / "there"), "--json"]
    words += ["--model", str(shared_encoder()), "--data", str(sentences)]
    done = cse_command("train", "-r", "simcse", *words)
    there = json.loads(done.out)
    weights = [
        (at / "model/model.safetensors").read_bytes()
        for at in (tmp_path / "here", tmp_path / "there")
    ]
    assert weights[0] == weights[1]
    here, own = run.to_dict(), ("run", "model", "seconds")
    assert {**there, **dict.fromkeys(own)} == {**here, **dict.fromkeys(own)}
    assert run.model == tmp_path / "here/model" and "3 steps" in repr(run)
    assert "the start" in repr(run) and run.to_dict()["start"] == run.outcome.start

    model = run.load(device="cpu")
    vectors = model.encode(["a boat", "green tea"])
    assert vectors.shape == (2, 32) and vectors.dtype == np.float32
    assert np.allclose(vectors[0], model.encode("a boat"), atol=1e-6)
    assert np.allclose(
        np.linalg.norm(model.encode(["a boat"], normalize=True), axis=1), 1, atol=1e-6
    )
    lines = cse_command("encode", str(run.folder), "-t", "a boat").out
    assert np.allclose(json.loads(lines)["vector"], vectors[0], atol=1e-6)

    scores = run.evaluate(pairs=pairs, no_baselines=True, quiet=True)
    words = ["eval", str(run.folder), "--pairs", pairs, "--no-baselines", "--json"]
    assert scores == json.loads(cse_command(*words).out)


def test_an_interrupted_run_goes_on(
    sentences: Path, tmp_path: Path, pairs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt) as stopped:
        patch.setattr(SilentReporter, "step", lambda self, step: signal.raise_signal(signal.SIGINT))
        texts: Any = {"model": shared_encoder(), "data": sentences, "dev": pairs}
        cse.train("simcse", options=SHORT, out=out, report="csv", quiet=True, **texts)
    assert f"resume with cse.resume('{out}')" in str(stopped.value)
    again: Any = {"options": SHORT, "out": out, "report": "csv", "resume": "auto", **texts}
    assert cse.train("simcse", quiet=True, **again).outcome.steps == 3
    rows = (out / "metrics.csv").read_text().splitlines()  # the reporter goes on too
    assert [row.split(",")[0] for row in rows] == ["step", "1", "2", "3"]
    finished = cse.train("simcse", **again)
    assert (finished.outcome.steps, finished.model) == (3, out / "model")
    with pytest.raises(cse.CseError, match="is finished|already finished"):
        cse.resume(out)
    for wrong in ({"resume": "yes"}, {"out": None}, {"force": True}):
        with pytest.raises(cse.CseError, match="resume"):
            cse.train("simcse", **{**again, **wrong})


@pytest.mark.slow
def test_the_notebook_runs(tmp_path: Path) -> None:
    book = nbformat.read(ROOT / "docs/python.ipynb", as_version=4)
    nbformat.validate(book)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert all(cell.outputs for cell in code), "save it with its outputs"
    for cell in code:
        cell.outputs = []
    client = NotebookClient(book, timeout=300, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    shown = [
        "".join(
            str(output.get("text", "")) + str(output.get("data", "")) for output in cell.outputs
        )
        for cell in book.cells
        if cell.cell_type == "code"
    ]
    assert "loss.twins" in shown[0]
    assert "train.lr" in shown[1] and "twin" in shown[1]
    assert "10 steps" in shown[2] and (tmp_path / "runs/notebook/model").is_dir()
    assert "starter.dev.spearman" in shown[3]
    assert "The ship sails away." in shown[5] and "runs/notebook" in shown[6]
