"""``train --help`` and ``train --dry-run``, and what the plan warns of."""

import json
import re
import sys
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest
from cse_lora.options import LoraOptions
from cse_testkit import shared_encoder

from cse_cli.options.paths import option_paths
from cse_cli.plugins.installed import Installed
from cse_cli.terminal.console import say_outline
from cse_cli.training.resolving import advice
from tests.fixtures.command_line import Cse, refused
from tests.fixtures.parts import compose, made_up_registry


def test_a_terminal_shows_a_plan_in_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "30")
    say_outline(["model: [a]", "warnings:", "  one two three four"])
    lines = re.sub(r"\x1b\[[\d;]*m| +$", "", capsys.readouterr().out, flags=re.M).splitlines()
    assert lines == ["model     [a]", "warnings  one two three", "            four"]


def test_help_shows_options_of_chosen_parts(cse: Cse, monkeypatch: pytest.MonkeyPatch) -> None:
    said = cse("train", "--loss", "infonce", "--loss", "+infonce:second", "--help-all")
    assert said.code == 0
    for words in ("--loss.infonce.temperature", "--loss.second.temperature", "--train.lr",
                  "loss.second (cse-toolkit ", "default: 0.05]", "[0.9, 0.999]"):  # fmt: skip
        assert words in said.out
    assert "--loss.infonce.temperature" not in cse("train", "--help").out
    monkeypatch.setenv("COLUMNS", "80")
    assert len(cse("train", "--help").out.splitlines()) <= 45
    said = cse("train", "--recipe", "mocose", "--help", "negatives.queue")
    assert said.code == 0
    assert "--negatives.queue.size" in said.out and "--train.lr" not in said.out
    said = cse("train", "--help", "trian")
    refused(said, "--help: no options of this run (got 'trian'); did you mean train?")
    refused(cse("train", "--help", "aug.fgsm"), "(got 'aug.fgsm'); add the part: --aug fgsm")


def test_flags_of_other_trainers_are_answered_with_ours(cse: Cse) -> None:
    table = files("cse_cli").joinpath("options", "flags_elsewhere.toml").read_text()
    known = {f"--{option.path}" for option in option_paths()}
    known |= {"--loss.infonce.temperature", "--negatives.hard-negatives.weight"}
    known |= {f"--adapter.lora.{name}" for name in LoraOptions.model_fields}
    help_ = cse("train", "--help").out
    for flag, ours in tomllib.loads(table).items():
        for word in ours.split():
            if word.startswith("--") and word != "--nproc-per-node":
                assert word in known or f"{word} " in help_, (flag, word)
    said = cse("train", "--learning_rate", "1")
    refused(said, "unknown option --learning_rate; cse calls it --train.lr")


def test_all_mistakes_are_named_at_once(cse: Cse) -> None:
    said = cse(
        "train", "--output_dir", "out", "--fp16", "--batch_sise=32", "--nothing", "--aug", "fgmm",
        "--train.lrr", "3", "--train.lr", "fast", "--data", "nothere.txt", "--dev", "nodev.tsv",
        "--train.batch_size", "0", "--model", "./nomodel", "--loss.infonce.temp", "1", "--dry-run",
    )  # fmt: skip
    assert (said.code, len(said.errors)) == (2, 12)
    for words in ("--output_dir; cse calls it --out DIR", "--fp16; cse calls it --train.precision",
                  "--batch_sise; did you mean --train.batch_size?",
                  "--nothing; see cse train --help", "did you mean lr?",
                  "nothere.txt: no such", "./nomodel", "'fast'", "integer >= 1",
                  "did you mean fgsm?", "did you mean temperature?", "nodev.tsv"):  # fmt: skip
        assert words in said.err, words
    # A mistake in the options of data looks for no other file.
    refused(cse("train", "--data", "nothere.txt", "--data.limit", "0", "--dry-run"), "data.limit")
    said = cse("train", "--loss", "infonce", "--aug", "nothing-of-this-name", "--help-all")
    assert said.code == 0, "help of a wrong choice shows what it can"
    assert "--loss.infonce.temperature" in said.out
    refused(
        cse("train", "--train.learning_rate", "1e-4"), "(got '1e-4'); cse calls it --train.lr 3e-5"
    )
    # Columns that an unknown flag would have brought are not missed.
    refused(cse("train", "--recipe", "simcse-supervised", "--train_file", "a.csv"), "--train_file")
    refused(cse("train", "-x"), "unknown option -x")
    refused(cse("train", "texts.txt"), "unexpected argument (got 'texts.txt')", "--data texts.txt")
    refused(cse("train", "--resume"), "option '--resume' requires an argument")


def test_the_plan_says_model_parts_views_passes_and_steps(cse: Cse, sentences: Path) -> None:
    words = ("train", "--dry-run", "--data", str(sentences))
    said = cse(*words, "--train.batch_size", "8")
    assert said.code == 0
    for line in ("loss.infonce (cse-toolkit ", "positive: column text, branch online",
                 "24 rows", "3 steps", "train.batch_size = 8, from the command line"):  # fmt: skip
        assert line in said.out
    refused(cse(*words, "--model", "someone/nothing"), "model.name", "hub does not answer")
    if Installed().registry.has("recipe", "neighbour"):  # the pairs of a round decide its steps
        data = ("--data", "starter", "--data.limit", "50")
        said = cse("train", "--recipe", "neighbour", *data, "--dry-run").out
        assert "steps per round as its pairs require" in said
        words = ("--recipe", "neighbour", *data, "--train.max_steps", "1", "--dry-run")
        assert "1 step a round, unless" in cse("train", *words).out


def test_settings_of_the_plan_and_a_saved_recipe(cse: Cse, sentences: Path, tmp_path: Path) -> None:
    file, saved = tmp_path / "mine.toml", tmp_path / "saved.toml"
    file.write_text("[train]\nlr = 1e-4\nbatch_size = 4\n", encoding="utf-8")
    words = ("train", "--dry-run", "--json", "--recipe", str(file), "--data", str(sentences))
    first = json.loads(cse(*words, "--train.batch_size=5", "--set", "train.batch_size=6",
                           "--seed", "7", "--pool", "mean", "--loss.infonce.temperature=0.1",
                           "--save-recipe", str(saved)).out)  # fmt: skip
    train = first["settings"]["train"]
    assert (train["batch_size"], train["lr"], train["seed"]) == (6, 1e-4, 7), "the later flag wins"
    assert "train.batch_size = 6, from the command line" in first["changed"]
    assert f"train.lr = 0.0001, from {file}" in first["changed"]
    again = json.loads(cse("train", "--dry-run", "--json", "--recipe", str(saved)).out)
    assert again["settings"] == first["settings"] | {"name": again["settings"]["name"]}
    assert again["parts"] == first["parts"]


def test_data_sets_have_weights_which_another_choice_of_data_drops(
    cse: Cse, sentences: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.csv"
    other.write_text("text\n" + "\n".join(f"a line {number}" for number in range(10)))
    saved = tmp_path / "saved.toml"
    words = ("train", "--dry-run", "--json")
    weighed = json.loads(cse(*words, "--data", f"{other}:1.5", "--data", str(sentences),
                             "--save-recipe", str(saved)).out)  # fmt: skip
    assert weighed["settings"]["data"]["weights"] == [1.5, 1.0]
    assert weighed["facts"]["rows"] == 15 + 24
    again = json.loads(cse(*words, "--recipe", str(saved), "--data", str(other)).out)
    assert "weights" not in again["settings"]["data"] and again["facts"]["rows"] == 10


PAIRS = "sentence1\tsentence2\tscore\nthe dog\ta dog\t4\nthe boat\ta dog\t1\nthe goal\ta goal\t5\n"


def planned(said: str, what: str) -> str:
    (line,) = (line for line in said.splitlines() if line.startswith(f"{what}: "))
    return line.removeprefix(f"{what}: ")


def test_evaluation_and_folder_of_the_plan(cse: Cse, sentences: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.dev.tsv"
    file.write_text(PAIRS, encoding="utf-8")
    words = ("train", "--dry-run", "--data", str(sentences), "--train.batch_size", "2")
    said = cse(*words, "--dev", str(file), "--train.eval_steps", "5", "--train.patience", "2").out
    assert planned(said, "evaluation") == (
        "on mine.dev (5 texts) at the start, every 5 steps and at the end: 4 times"
    )
    assert planned(said, "checkpoint") == (
        "the step with the best mine.dev.spearman is kept; "
        "training stops after 2 evaluations without a better one"
    )
    assert planned(said, "folder") == "runs/infonce-DATE-TIME (--out DIR names another)"
    out = str(tmp_path / "mine")
    said = cse(*words, "--out", out).out
    assert planned(said, "evaluation") == "none"
    assert planned(said, "checkpoint").startswith("the last step is kept: no dev set")
    assert planned(said, "folder") == out
    said = cse(*words, "--dev", str(file), "--train.eval_steps", "0").out
    assert planned(said, "checkpoint") == "the last step is kept: train.eval_steps is 0"
    words = ("train", "--dry-run", "--json", "--data", str(sentences), "--train.batch_size", "2")
    said = json.loads(cse(*words, "--dev", str(file), "--dev", str(file)).out)
    assert said["evaluation"] == {
        "sets": {"mine.dev": {"texts": 5}, "mine.dev-2": {"texts": 5}},
        "every_steps": 1, "times": 13, "chosen_by": "mean", "patience": None,
    }  # fmt: skip
    assert said["folder"] == {"path": "runs/infonce-DATE-TIME", "default": True}
    said = json.loads(cse(*words, "--out", str(tmp_path / "x")).out)
    assert said["evaluation"]["times"] == 0 and said["evaluation"]["chosen_by"] is None
    assert said["folder"] == {"path": str(tmp_path / "x"), "default": False}
    train = ["train", "--data", str(sentences), "--train.batch_size", "4", "--dev", str(file)]
    train += ["--model", str(shared_encoder()), "--train.eval_steps", "4"]
    times = json.loads(cse(*train, "--dry-run", "--json").out)["evaluation"]["times"]
    assert cse(*train, "--out", str(tmp_path / "run"), "--quiet").code == 0
    lines = (tmp_path / "run/metrics.jsonl").read_text(encoding="utf-8").splitlines()
    assert sum("mine.dev.spearman" in json.loads(line) for line in lines) == times - 1 == 2


WARNED = {
    "train.chunk_size=65": "train.chunk_size 65 is larger than train.batch_size 64",
    "train.batch_size=2000": "is larger than the data (1000 rows)",
    "train.warmup=500": "train.warmup 500 is longer than the run (16 steps)",
    "loss.infonce.weight=linear(0.5,-0.25)": (
        "loss.infonce.weight is below zero (-0.25): training increases that loss"
    ),
}
NOT_WARNED = ("train.chunk_size=64", "train.batch_size=1000", "train.warmup=16", "train.warmup=0.5",
         "loss.infonce.weight=0")  # fmt: skip


def test_what_may_be_a_mistake_is_warned_of_and_what_is_plain_is_not() -> None:
    for setting, line in WARNED.items():
        (found,) = advice(compose(None, setting), made_up_registry())
        assert line in found
    for setting in NOT_WARNED:
        assert not list(advice(compose(None, setting), made_up_registry())), setting
