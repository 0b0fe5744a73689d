"""Words of the command line as settings, and what the shell offers at the tabulator key."""

import pytest

from cse_cli.options.flags import check_once, peek, settings_as_sets, take_no_plugin
from cse_core.errors import CseError
from tests.fixtures.command_line import Cse

OFFERED = {
    "cse li": ["list-plugins", "list-recipes"],
    "cse train --loss inf": ["infonce"],
    "cse train --pool +m": ["+mean", "+mlp"],
    "cse train --loss.infonce.temp": ["--loss.infonce.temperature"],
    "cse train --loss twins --loss.twins.mar": ["--loss.twins.margin"],
    "cse train --train.l": ["--train.log_steps", "--train.lr"],
    "cse show-recipe sim": ["simcse"],
    "cse eval sta": ["starter"],
}


def test_flags_of_options_become_settings() -> None:
    for words, changed in (
        (["train", "--train.lr", "3e-5"], ["train", "--set", "train.lr=3e-5"]),
        (["--train.lr=3e-5"], ["--set", "train.lr=3e-5"]),
        (["--train.lr", "-1"], ["--set", "train.lr=-1"]),
        (["--negatives.queue.size", "64", "-q"], ["--set", "negatives.queue.size=64", "-q"]),
        (["--model.freeze_embeddings", "-q"], ["--set", "model.freeze_embeddings=true", "-q"]),
        (["--model.freeze_embeddings"], ["--set", "model.freeze_embeddings=true"]),
        (["--data.columns.text=a=b"], ["--set", "data.columns.text=a=b"]),
        (["--out", "runs/a.b", "-d", "x.txt"], ["--out", "runs/a.b", "-d", "x.txt"]),
        (["--", "--train.lr", "1"], ["--", "--train.lr", "1"]),
    ):
        assert settings_as_sets(words) == changed


def test_a_flag_of_one_value_is_given_once() -> None:
    for words, said in (
        (["--recipe", "dclr", "-r=simcse"],
         r"--recipe: given more than once \(dclr, simcse\); name one, and add parts of the other: "
         r"--loss \+NAME"),
        (["-o", "a", "--out", "b"], r"--out: given more than once \(a, b\); leave one out"),
        (["--train.seed", "3", "--seed", "4"], "--seed: is --train.seed too; leave one out"),
        (["-d", "a", "--set", "data.path=b"], "--data: is --data.path too; leave one out"),
    ):  # fmt: skip
        with pytest.raises(CseError, match=said):
            check_once(words)
    check_once(["--loss", "a", "--loss", "b", "-d", "a", "-d", "b", "--train.lr", "1",
                "--train.lr", "2", "--seed", "1", "--seed=1", "--", "--seed", "2"])  # fmt: skip


def test_words_are_taken_out() -> None:
    words = ["--no-plugin", "a", "train", "--no-plugin=b", "--loss", "x", "--no-plugin", "c"]
    assert take_no_plugin(words) == (["train", "--loss", "x"], ["a", "b", "c"])
    assert take_no_plugin(["encode", "--", "--no-plugin", "a"])[1] == []
    for words in (["train", "--no-plugin"], ["--no-plugin", "--json"]):
        with pytest.raises(CseError, match="no name follows"):
            take_no_plugin(words)
    choice = peek(["train", "--frob", "-r", "simcse", "--loss=+infonce:b", "--loss", "~infonce",
                   "-m", "starter", "-d", "a.txt", "--train.lr", "1", "--help"])  # fmt: skip
    assert choice.recipe == "simcse"
    assert choice.kinds == {"loss": ["+infonce:b", "~infonce"]}
    assert (choice.model, choice.data, choice.sets) == ("starter", ["a.txt"], ["train.lr=1"])
    assert peek(["train", "--recipe", "--help"]).recipe is None
    assert peek(["train", "--loss"]).kinds == {}


def test_names_are_completed_in_zsh_and_bash(cse: Cse, monkeypatch: pytest.MonkeyPatch) -> None:
    for typed, names in OFFERED.items():
        monkeypatch.setenv("_CSE_COMPLETE", "complete_zsh")
        monkeypatch.setenv("_TYPER_COMPLETE_ARGS", typed)
        said = cse()
        assert (said.code, said.err) == (0, "")
        assert all(f'"{name}"' in said.out for name in names), said
        monkeypatch.delenv("_TYPER_COMPLETE_ARGS")
        monkeypatch.setenv("_CSE_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", typed)
        monkeypatch.setenv("COMP_CWORD", str(len(typed.split()) - 1))
        said = cse()
        assert (said.code, said.err) == (0, "")
        assert set(names) <= set(said.out.split()), said
        assert all(word.startswith(typed.split()[-1]) for word in said.out.split()), said
