"""``import cse`` gives what the command line gives: plans, weights, scores, errors."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient

import cse
from tests.fixtures.command_line import Cse

ROOT = Path(__file__).parents[2]
SHORT = {
    "train.max_steps": 3,
    "train.batch_size": 8,
    "train.eval_steps": 2,
    "train.precision": "fp32",
    "data.limit": 200,
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


def test_importing_it_imports_nothing_heavy() -> None:
    heavy = ("torch", "typer", "rich")
    code = f"import cse, sys; dir(cse); print([n for n in {heavy} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_name_is_there() -> None:
    assert all(hasattr(cse, name) for name in cse.__all__)
    with pytest.raises(AttributeError, match="trian"):
        cse.trian  # type: ignore[attr-defined]  # noqa: B018


def test_a_plan_is_that_of_the_dry_run(cse_command: Cse) -> None:
    plan = cse.plan("simcse", aug="fgsm", negatives=["queue"], loss="+twins", options=SHORT, seed=7)
    words = ["train", "-r", "simcse", "--aug", "fgsm", "--negatives", "queue", "--loss", "+twins",
             "--seed", "7", *FLAGS, "--dry-run"]  # fmt: skip
    assert str(plan).split("\n") == cse_command(*words).out.rstrip("\n").split("\n")
    assert plan.to_dict() == json.loads(cse_command(*words, "--json").out)


@pytest.mark.parametrize(
    "options",
    [
        {"train": {"lr": 3e-5, "dev": ["none"]}, "loss.infonce.temperature": 0.07},
        {
            "train.lr": np.float64(3e-5),
            "train.dev": "none",
            "loss": {"infonce": {"temperature": "0.07"}},
        },
    ],
)
def test_options_are_paths_or_tables(options: dict[str, Any]) -> None:
    composition = cse.plan("simcse", options=options).composition
    assert composition.train.lr == 3e-5 and composition.train.dev == ("none",)
    assert next(iter(composition.of("loss"))).options.temperature == 0.07  # type: ignore[attr-defined]


def test_none_and_paths_are_values(tmp_path: Path) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("one\ntwo\n")
    composition = cse.plan(data=texts, options={"data.limit": None}).composition
    assert composition.data.path == (str(texts),) and composition.data.limit is None


MISTAKES = [
    ({"recipe": "simcsee"}, ["-r", "simcsee"]),
    ({"loss": "twinz"}, ["--loss", "twinz"]),
    ({"options": {"train.lrr": 1}}, ["--train.lrr", "1"]),
    ({"options": {"train.lr": "fast"}}, ["--train.lr", "fast"]),
    ({"data": "nothere.txt"}, ["--data", "nothere.txt"]),
]


@pytest.mark.parametrize(("keywords", "words"), MISTAKES, ids=str)
def test_a_mistake_has_the_line_of_the_command(
    cse_command: Cse, keywords: dict[str, Any], words: list[str]
) -> None:
    with pytest.raises(cse.CseError) as found:
        cse.plan(**keywords)
    printed = cse_command("train", *words, "--dry-run")
    assert printed.code == 2
    assert printed.err.strip() == f"error: {found.value}"


def test_a_value_of_no_known_type_is_refused() -> None:
    with pytest.raises(cse.CseError, match="train.lr: must be text, a number"):
        cse.plan(options={"train.lr": object()})


def test_a_run_is_that_of_the_command(
    cse_command: Cse, tmp_path: Path, pairs: str, capfd: pytest.CaptureFixture[str]
) -> None:
    run = cse.train("simcse", options=SHORT, dev=pairs, out=tmp_path / "here")
    assert "3 steps" in capfd.readouterr().err
    words = ["train", "-r", "simcse", *FLAGS, "--dev", pairs, "--out", str(tmp_path / "there")]
    done = cse_command(*words, "--json")
    there = json.loads(done.out)
    weights = [
        (at / "model/model.safetensors").read_bytes()
        for at in (tmp_path / "here", tmp_path / "there")
    ]
    assert weights[0] == weights[1]
    here = run.to_dict()
    assert {**there, "run": 0, "model": 0, "seconds": 0} == {
        **here,
        "run": 0,
        "model": 0,
        "seconds": 0,
    }
    assert run.model == tmp_path / "here/model" and "3 steps" in repr(run)

    model = run.load(device="cpu")
    vectors = model.encode(["a boat", "green tea"])
    assert vectors.shape == (2, 256) and vectors.dtype == np.float32
    assert np.allclose(vectors[0], model.encode("a boat"), atol=1e-6)
    assert np.allclose(
        np.linalg.norm(model.encode(["a boat"], normalize=True), axis=1), 1, atol=1e-6
    )
    lines = cse_command("encode", str(run.folder), "-t", "a boat").out
    assert np.allclose(json.loads(lines)["vector"], vectors[0], atol=1e-6)

    scores = run.evaluate(pairs=pairs, no_baselines=True, quiet=True)
    words = ["eval", str(run.folder), "--pairs", pairs, "--no-baselines", "--json"]
    assert scores == json.loads(cse_command(*words).out)


def test_a_plan_is_trained_alone() -> None:
    plan = cse.plan("simcse", options=SHORT)
    with pytest.raises(cse.CseError, match="seed cannot change it"):
        cse.train(plan, seed=3)


def test_quiet_shows_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    cse.train("simcse", options={**SHORT, "train.dev": "none"}, out=tmp_path / "run", quiet=True)
    assert capfd.readouterr() == ("", "")


def test_an_interrupted_run_goes_on(tmp_path: Path, pairs: str) -> None:
    out = tmp_path / "run"
    code = (
        "import cse, os, signal\n"
        "from contextlib import contextmanager\n"
        "import cse_cli.terminal.progress as progress\n"
        "class Stops(progress.SilentReporter):\n"
        "    def step(self, step):\n"
        "        if step == 1: os.kill(os.getpid(), signal.SIGINT)\n"
        "@contextmanager\n"
        "def silent(**_): yield Stops()\n"
        "progress.reporter_for = silent\n"
        f"cse.train('simcse', options={SHORT!r}, dev={pairs!r}, out={str(out)!r}, report='csv')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    assert done.returncode == -signal.SIGINT
    assert f"go on with cse.resume('{out}')" in done.stderr
    assert cse.resume(out, quiet=True).outcome.steps == 3
    rows = (out / "metrics.csv").read_text().splitlines()  # the reporter goes on too
    assert [row.split(",")[0] for row in rows] == ["step", "1", "2", "3"]
    with pytest.raises(cse.CseError, match="is finished|already finished"):
        cse.resume(out)


def test_an_evaluation_refuses_what_the_command_refuses(cse_command: Cse) -> None:
    for keywords, words in (
        ({"pairs": "nothere.tsv"}, ["--pairs", "nothere.tsv"]),
        ({"data": "nothere"}, ["--data", "nothere"]),
    ):
        with pytest.raises(cse.CseError) as found:
            cse.evaluate("starter", **keywords)
        assert cse_command("eval", "starter", *words).err.strip() == f"error: {found.value}"
    with pytest.raises(cse.CseError, match="unknown option.*did you mean suite"):
        cse.evaluate("starter", suit="sts")


@pytest.mark.slow
def test_the_notebook_runs(tmp_path: Path) -> None:
    book = nbformat.read(ROOT / "docs/python.ipynb", as_version=4)
    nbformat.validate(book)
    assert not any(cell.get("outputs") for cell in book.cells), "save it without outputs"
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
    assert "runs/notebook" in shown[5]
