"""Packages that authors outside wrote from the guide and the reference alone still work.

They stand for plugins that nobody here can fix: where a change breaks one of them, it breaks
theirs. A package is edited only where the interface was changed on purpose.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from cse_testkit import Rig, compose, failures, run_steps, suite_of, tiny_corpus
from cse_testkit.watching import difference, snapshot

from cse_cli.main import run
from cse_core.errors import CseError
from cse_core.registry.manager import load_plugins
from cse_core.registry.registry import Registry
from tests.fixtures.packages import installed

HERE = Path(__file__).parent
PARTS = {
    "cse-distinct": {"negatives": "distinct", "metric": "isoscore", "recipe": "distinct"},
    "cse-adapter": {"branch": "adapter", "aug": "frequent-words", "recipe": "adapter"},
}
"""What each package brings, by kind."""
TOGETHER: dict[str, Any] = {
    "recipe": "adapter",
    "kinds": {"negatives": ["distinct"]},
    "sets": ["negatives.distinct.threshold=0.999", "negatives.distinct.size=7"],
}
"""A run with parts of both."""
WITH_OTHERS: list[dict[str, Any]] = [
    {"kinds": {"aug": ["frequent-words", "fgsm"], "pool": ["segments", "cls"]}},
    {
        "kinds": {"negatives": ["distinct", "hippocampus"], "positives": ["knn-smoothing"]},
        "sets": ["negatives.distinct.branch=ema"],
    },
    {
        "recipe": "sncse",
        "kinds": {"aug": ["+frequent-words", "+word-repetition"]},
        "sets": ["views.positive.branch=adapter"],
    },
]
"""Runs with parts of papers."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """Install a copy of each package; yield their folders."""
    top = tmp_path_factory.mktemp("outside")
    copies = {name: Path(shutil.copytree(HERE / name, top / name)) for name in PARTS}
    with installed(copies):
        yield copies


@pytest.fixture(scope="module")
def registry(folders: dict[str, Path]) -> Registry:
    """Return what is installed, with the packages."""
    return Registry.from_plugins(load_plugins().infos)


def test_they_are_listed_planned_and_train(
    registry: Registry, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = [f"Sentence {n} is about {what}.\n" for n in range(8) for what in "abc"]
    (tmp_path / "texts.txt").write_text("".join(texts), "utf-8")
    for name, parts in PARTS.items():
        (info,) = (info for info in load_plugins().infos if info.distribution == name)
        assert (info.status, info.reason) == ("active", "")
        assert {spec.name for spec in info.parts} == set(parts.values())
        words = ["train", "--recipe", parts["recipe"], "--data", str(tmp_path / "texts.txt")]
        assert run([*words, "--dry-run"]) == 0
        assert f"({name} " in capsys.readouterr().out
        done = run_steps(recipe=parts["recipe"], steps=2, registry=registry)
        assert all(loss > 0 for loss in done.losses)


def test_they_train_with_parts_of_papers(registry: Registry) -> None:
    for composed in WITH_OTHERS:
        done = run_steps(**composed, steps=2, registry=registry)
        assert all(torch.isfinite(torch.tensor(done.losses))), composed


def test_an_option_that_a_part_narrowed_is_refused_in_plain_words(registry: Registry) -> None:
    narrowed = re.escape("branch.adapter.copies: must be encoder (got 'encoder+heads'")
    with pytest.raises(CseError, match=narrowed):
        sets = ["branch.adapter.copies=encoder+heads"]
        compose(recipe="adapter", sets=sets, registry=registry)


def test_a_stopped_run_of_both_goes_on_bit_for_bit(registry: Registry, tmp_path: Path) -> None:
    made = compose(**TOGETHER, registry=registry)
    whole, first, second = (Rig(made, tiny_corpus()) for _ in range(3))
    whole.step(4)
    first.step(2)
    first.save(tmp_path / "checkpoint")
    second.restore(tmp_path / "checkpoint")
    second.step(2)
    one, other = (snapshot([rig.weights(), rig.state()]) for rig in (whole, second))
    assert difference(one, other) is None


def test_the_kit_finds_no_broken_promise(registry: Registry) -> None:
    for parts in PARTS.values():
        for kind, name in parts.items():
            if kind != "recipe":
                assert failures(suite_of(kind, name, registry)) == {}  # type: ignore[arg-type]
