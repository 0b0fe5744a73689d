"""Modules under the names that they had: they work, with a warning that says the new name."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

import cse_core

RUN = [sys.executable, "-W", "always", "-c"]


@pytest.mark.parametrize("old", sorted(cse_core._moved()["modules"]))
def test_an_old_name_is_the_new_module(old: str) -> None:
    path = cse_core._moved()["modules"][old]
    new = import_module(path)
    with pytest.warns(FutureWarning, match=f"cse_core.{old} is now {path}"):
        sys.modules.pop(f"cse_core.{old}", None)
        moved = import_module(f"cse_core.{old}")
    public = [name for name in vars(new) if not name.startswith("_")]
    assert public and all(getattr(moved, name) is getattr(new, name) for name in public)


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize(
    ("old", "new"),
    {
        "composition.Facts": "records.Facts",
        "composition.Role": "vocabulary.Role",
        "encoding.Hidden": "types.Hidden",
        "encoding.RaggedEncoder": "encoders.encoder.PackedEncoder",
        "stack.Stack": "models.sentence_encoder.SentenceEncoder",
    }.items(),
)
def test_names_in_them_that_moved_on_or_have_another_name(old: str, new: str) -> None:
    def found(path: str) -> object:
        module, _, name = path.rpartition(".")
        return getattr(import_module(f"cse_core.{module}"), name)

    assert found(old) is found(new)


def test_an_author_is_shown_where_the_import_stands() -> None:
    code = "from cse_core.protocols import Loss\nfrom cse_core.testing.losses import LossSuite"
    done = subprocess.run([*RUN, code], capture_output=True, text=True, check=True)
    assert "cse_core.protocols is now cse_core.parts" in done.stderr
    assert "cse_core.testing.losses is now cse_testkit.losses" in done.stderr


def test_a_name_that_never_was_stays_unknown() -> None:
    with pytest.raises(ModuleNotFoundError, match="cse_core.nothing"):
        import_module("cse_core.nothing")
