"""What the shell offers at the tabulator key."""

from __future__ import annotations

import pytest

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
