"""Words of the command line as settings, and options as flags of help."""

from __future__ import annotations

import pytest

from cse_cli.options.flags import peek, settings_as_sets, take_no_plugin
from cse_core.errors import CseError


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


def test_no_plugin_is_taken_out_wherever_it_stands() -> None:
    words = ["--no-plugin", "a", "train", "--no-plugin=b", "--loss", "x", "--no-plugin", "c"]
    assert take_no_plugin(words) == (["train", "--loss", "x"], ["a", "b", "c"])
    assert take_no_plugin(["encode", "--", "--no-plugin", "a"])[1] == []
    for words in (["train", "--no-plugin"], ["--no-plugin", "--json"]):
        with pytest.raises(CseError, match="no name follows"):
            take_no_plugin(words)


def test_peek_reads_the_choice_past_mistakes() -> None:
    choice = peek(["train", "--frob", "-r", "simcse", "--loss=+infonce:b", "--loss", "~infonce",
                   "-m", "starter", "-d", "a.txt", "--train.lr", "1", "--help"])  # fmt: skip
    assert choice.recipe == "simcse"
    assert choice.kinds == {"loss": ["+infonce:b", "~infonce"]}
    assert (choice.model, choice.data, choice.sets) == ("starter", ["a.txt"], ["train.lr=1"])
    assert peek(["train", "--recipe", "--help"]).recipe is None
    assert peek(["train", "--loss"]).kinds == {}
