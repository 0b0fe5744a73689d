"""Packages that authors outside wrote from the guide and the reference alone still work.

They stand for plugins that nobody here can fix: where a change breaks one of them, it breaks
theirs. A package is edited only where the interface was changed on purpose, with a version of it.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from cse_testkit import Rig, compose, failures, run_steps, suite_of, tiny_corpus

from cse_cli.main import run
from cse_cli.plugins.manager import load_plugins
from cse_core.errors import CseError
from cse_core.registry.registry import Registry
from tests.docs.pages import ROOT, write_metadata

HERE = Path(__file__).parent
PARTS = {
    "cse-arcloss": {"loss": "arc", "recipe": "arcloss"},
    "cse-distinct": {"negatives": "distinct", "metric": "isoscore", "recipe": "distinct"},
    "cse-adapter": {"branch": "adapter", "aug": "frequent-words", "recipe": "adapter"},
}
"""What each package brings, by kind."""
TOGETHER: dict[str, Any] = {
    "recipe": "adapter",
    "kinds": {"loss": ["arc"], "negatives": ["distinct"]},
    "sets": ["negatives.distinct.threshold=0.999", "negatives.distinct.size=7"],
}
"""A run with parts of all three."""
WITH_OTHERS: dict[str, dict[str, Any]] = {
    "arc over a queue, words perturbed": {
        "kinds": {"loss": ["arc"], "negatives": ["queue"], "aug": ["fgsm"]},
        "sets": ["loss.arc.directions=both"],
    },
    "arc beside twins, over segments": {
        "kinds": {"loss": ["arc", "twins"], "pool": ["segments", "cls"]},
    },
    "distinct beside hippocampus": {
        "kinds": {"loss": ["infonce"], "negatives": ["distinct", "hippocampus"]},
        "sets": ["negatives.distinct.branch=ema"],
    },
    "distinct for arc and neighbours": {
        "kinds": {"negatives": ["distinct"], "positives": ["knn-smoothing"]},
    },
    "adapter under a prompt": {"recipe": "sncse", "sets": ["views.positive.branch=adapter"]},
    "frequent words, then repeated ones": {"kinds": {"aug": ["frequent-words", "word-repetition"]}},
}
"""Runs with parts of papers."""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """Leave each package as ``pip install -e`` does, without pip; yield their folders."""
    top = tmp_path_factory.mktemp("outside")
    folders = []
    for name in PARTS:
        folder = top / name
        shutil.copytree(HERE / name, folder, ignore=shutil.ignore_patterns("__pycache__"))
        project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
        points = "".join(
            f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in found.items())
            for group, found in project["entry-points"].items()
        )
        write_metadata(folder, name, "", project["version"], points=points)
        folders.append(str(folder))
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CSE_DISABLE_PLUGINS", raising=False)
        patch.chdir(top)
        for folder in folders:
            patch.syspath_prepend(folder)
        importlib.invalidate_caches()
        yield folders
    packages = {name.replace("-", "_") for name in PARTS}
    for module in [m for m in sys.modules if m.partition(".")[0] in packages]:
        del sys.modules[module]


@pytest.fixture(scope="module")
def registry(installed: list[str]) -> Registry:
    """Return what is installed, with the packages."""
    return Registry.from_plugins(load_plugins().infos)


@pytest.mark.parametrize("name", PARTS)
def test_it_is_listed(name: str, registry: Registry) -> None:
    (info,) = (info for info in load_plugins().infos if info.distribution == name)
    assert (info.status, info.reason) == ("active", "")
    assert {spec.name for spec in info.parts} == set(PARTS[name].values())
    for kind, part in PARTS[name].items():
        assert registry.find(kind, part).distribution == name  # type: ignore[arg-type]


@pytest.mark.parametrize("name", PARTS)
def test_its_recipe_is_planned_and_trains(
    name: str, registry: Registry, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = PARTS[name]["recipe"]
    (tmp_path / "texts.txt").write_text(
        "".join(f"Sentence {n} is about {what}.\n" for n in range(8) for what in "abc"), "utf-8"
    )
    words = ["train", "--recipe", recipe, "--data", str(tmp_path / "texts.txt")]
    assert run([*words, "--dry-run"]) == 0
    assert f"({name} " in capsys.readouterr().out
    done = run_steps(recipe=recipe, steps=2, registry=registry)
    assert all(loss > 0 for loss in done.losses)


@pytest.mark.parametrize("name", WITH_OTHERS)
def test_they_train_with_parts_of_papers(name: str, registry: Registry) -> None:
    done = run_steps(**WITH_OTHERS[name], steps=2, registry=registry)
    assert all(torch.isfinite(torch.tensor(done.losses)))


def test_an_option_that_a_part_narrowed_is_refused_in_plain_words(registry: Registry) -> None:
    with pytest.raises(CseError, match=re.escape("loss.arc.similarity: must be cosine (got 'dot'")):
        compose(kinds={"loss": ["arc"]}, sets=["loss.arc.similarity=dot"], registry=registry)


def test_a_stopped_run_of_all_three_goes_on_bit_for_bit(registry: Registry, tmp_path: Path) -> None:
    def rig() -> Rig:
        return Rig(compose(**TOGETHER, registry=registry), tiny_corpus(), registry=registry)

    whole, first, second = rig(), rig(), rig()
    whole.step(4)
    first.step(2)
    first.save(tmp_path / "checkpoint")
    second.restore(tmp_path / "checkpoint")
    second.step(2)
    for one, other in ((whole.weights(), second.weights()), (whole.state()[0], second.state()[0])):
        assert one.keys() == other.keys()
        assert all(torch.equal(one[name], other[name]) for name in one)
    assert whole.state()[1] == second.state()[1]


@pytest.mark.parametrize(
    ("kind", "name"), [p for parts in PARTS.values() for p in parts.items() if p[0] != "recipe"]
)
def test_the_kit_finds_no_broken_promise(kind: Any, name: str, registry: Registry) -> None:
    assert failures(suite_of(kind, name, registry)) == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", PARTS)
def test_its_own_tests_pass(name: str, installed: list[str]) -> None:
    paths = os.pathsep.join([*installed, str(ROOT), os.environ.get("PYTHONPATH", "")])
    (folder,) = (folder for folder in installed if folder.endswith(name))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout
