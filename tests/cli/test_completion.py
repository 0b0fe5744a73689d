"""What the shell offers at the tabulator key."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.fixtures.command_line import CSE


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("cse li", ['"list-plugins"', '"list-recipes"']),
        ("cse train --loss inf", ['"infonce"']),
        ("cse train --pool +m", ['"+mean"', '"+mlp"']),
        ("cse train --loss.infonce.temp", ['"--loss.infonce.temperature"']),
        ("cse show-recipe sim", ['"simcse"']),
        ("cse eval sta", ['"starter"']),
    ],
)
def test_names_are_completed(typed: str, offered: list[str], tmp_path: Path) -> None:
    environ = {**os.environ, "_CSE_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": typed}
    done = subprocess.run([CSE], env=environ, cwd=tmp_path, capture_output=True, text=True)
    for name in offered:
        assert name in done.stdout, done


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("cse train --loss inf", ["infonce"]),
        ("cse train --loss.infonce.temp", ["--loss.infonce.temperature"]),
        ("cse train --loss twins --loss.twins.mar", ["--loss.twins.margin"]),
        ("cse train --train.l", ["--train.log_steps", "--train.lr"]),
    ],
)
def test_bash_completes_as_the_others_do(typed: str, offered: list[str], tmp_path: Path) -> None:
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1)}
    environ = {**os.environ, "_CSE_COMPLETE": "complete_bash", **words}
    done = subprocess.run([CSE], env=environ, cwd=tmp_path, capture_output=True, text=True)
    assert sorted(done.stdout.split()) == offered, done
