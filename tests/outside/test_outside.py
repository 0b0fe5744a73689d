"""A package that an author outside wrote from the guide and the reference alone still works.

It stands for plugins that nobody here can fix: where a change breaks it, it breaks theirs. It is
edited only where the interface was changed on purpose.
"""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from cse_testkit import compose, failures, run_steps, suite_of

from cse_cli.main import run
from cse_core.errors import CseError
from cse_core.registry.manager import load_plugins
from cse_core.registry.registry import Registry
from tests.fixtures.packages import installed

NAME = "cse-adapter"
OWN = {"branch": ["adapter"]}
"""No other plugin has a branch that trains."""
POSITIVE = "views.positive.branch=adapter"
WITH_OTHERS: list[dict[str, Any]] = [
    {"kinds": {**OWN, "aug": ["fgsm"], "pool": ["segments", "cls"]}, "sets": [POSITIVE]},
    {"recipe": "sncse", "kinds": {**OWN, "aug": ["+word-repetition"]}, "sets": [POSITIVE]},
]
"""Runs with parts of papers."""


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """Install a copy of the package; yield what is installed."""
    copy = shutil.copytree(Path(__file__).parent / NAME, tmp_path_factory.mktemp("outside") / NAME)
    with installed({NAME: Path(copy)}):
        yield Registry.from_plugins(load_plugins().infos)


def test_it_is_listed_planned_and_trains(
    registry: Registry, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = [f"Sentence {n} is about {what}.\n" for n in range(8) for what in "abc"]
    (tmp_path / "texts.txt").write_text("".join(texts), "utf-8")
    (info,) = (info for info in load_plugins().infos if info.distribution == NAME)
    assert (info.status, info.reason) == ("active", "")
    assert {spec.name for spec in info.parts} == {"adapter"}
    words = ["train", "--recipe", "adapter", "--data", str(tmp_path / "texts.txt")]
    assert run([*words, "--dry-run"]) == 0
    assert f"({NAME} " in capsys.readouterr().out
    done = run_steps(recipe="adapter", steps=2, registry=registry)
    assert all(loss > 0 for loss in done.losses)


def test_it_trains_with_parts_of_papers(registry: Registry) -> None:
    for composed in WITH_OTHERS:
        done = run_steps(**composed, steps=2, registry=registry)
        assert all(torch.isfinite(torch.tensor(done.losses))), composed


def test_an_option_that_a_part_narrowed_is_refused_in_plain_words(registry: Registry) -> None:
    narrowed = re.escape("branch.adapter.copies: must be encoder (got 'encoder+heads'")
    with pytest.raises(CseError, match=narrowed):
        sets = ["branch.adapter.copies=encoder+heads"]
        compose(recipe="adapter", sets=sets, registry=registry)


def test_the_kit_finds_no_broken_promise(registry: Registry) -> None:
    assert failures(suite_of("branch", "adapter", registry)) == {}
