"""The built wheels in an empty environment: the core alone, and plugins on top in any order."""

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from zipfile import ZipFile

import pytest
from hatchling.builders.wheel import WheelBuilder

from docs.packages import ROOT
from tests.fixtures.command_line import forked
from tests.fixtures.tiny import make_encoder

PLUGINS = sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))


@dataclass(frozen=True)
class Environment:
    """What is installed: everything that is not ours, and some of our wheels."""

    folder: Path
    others: Path

    def install(self, wheel: Path) -> None:
        with ZipFile(wheel) as archive:
            archive.extractall(self.folder)

    def cse(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run the command; ``-S`` keeps the packages of this environment out."""
        code = "from cse_cli.main import main; main()"
        return subprocess.run(
            [sys.executable, "-S", "-c", code, *words],
            cwd=self.folder, capture_output=True, text=True, timeout=600,
            env={
                "PATH": os.environ["PATH"], "HF_HUB_OFFLINE": "1", "CSE_CACHE": "off",
                "COLUMNS": "160", "PYTHONPATH": f"{self.folder}:{self.others}",
            },
        )  # fmt: skip

    def train(self, *words: str) -> None:
        """Train in this process, which imports our packages again."""
        for name in [name for name in sys.modules if name.startswith("cse")]:
            del sys.modules[name]
        plain = (p for p in sys.path if "-packages" not in p and not Path(p).is_relative_to(ROOT))
        sys.path[:] = [str(self.folder), str(self.others), *plain]
        os.chdir(self.folder)
        main = import_module("cse_cli.main")
        assert Path(str(main.__file__)).is_relative_to(self.folder)
        sys.exit(main.run(["train", *words]))


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the wheel of every distribution by its name."""
    folder = tmp_path_factory.mktemp("wheels")
    found = {}
    for root in (ROOT, *PLUGINS):
        made = Path(next(WheelBuilder(str(root)).build(directory=str(folder))))
        found[made.name.partition("-")[0].replace("_", "-")] = made
    return found


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with every installed package that is not of this repository."""
    folder = tmp_path_factory.mktemp("others")
    for path in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if not path.name.startswith(("cse_", "_editable_impl_cse", "__pycache__")):
            (folder / path.name).symlink_to(path)
    return folder


@pytest.fixture
def core(tmp_path: Path, wheels: dict[str, Path], others: Path) -> Environment:
    made = Environment(tmp_path, others)
    made.install(wheels["cse-toolkit"])
    return made


def test_what_is_in_the_wheels(wheels: dict[str, Path]) -> None:
    for root in (ROOT, *PLUGINS):
        for package in [*root.glob("cse_*")]:
            name = "cse-toolkit" if root == ROOT else f"cse-{root.name}"
            inside = set(ZipFile(wheels[name]).namelist())
            files = {str(path.relative_to(root)) for path in package.rglob("*.py")}
            assert files <= inside and f"{package.name}/py.typed" in inside, name
    licence = (ROOT / "LICENSE").read_bytes()
    assert len(wheels) == len(PLUGINS) + 1
    for name, wheel in wheels.items():
        with ZipFile(wheel) as archive:
            info = f"{name.replace('-', '_')}-{wheel.name.split('-')[1]}.dist-info"
            assert archive.read(f"{info}/licenses/LICENSE") == licence, name
            metadata = archive.read(f"{info}/METADATA").decode()
        for line in ("License-Expression: Apache-2.0", "License-File: LICENSE", "Classifier: "):
            assert f"\n{line}" in metadata, name


def test_the_core_alone_lists_plans_trains_and_says_what_is_missing(core: Environment) -> None:
    listed = core.cse("list-plugins")
    assert listed.returncode == 0 and "infonce" in listed.stdout and "mocose" not in listed.stdout
    planned = core.cse("train", "--model", make_encoder(core.folder / "encoder"),
                       "--data", _texts(core.folder), "--dry-run")  # fmt: skip
    assert planned.returncode == 0, planned.stderr
    assert "loss.infonce (cse-toolkit" in planned.stdout
    words = ("--model", "encoder", "--data", "texts.txt", "--train.max_steps", "2", "--out", "run")
    assert forked(core.train, *words) == 0
    assert (core.folder / "run/model/model.safetensors").is_file()
    for words, wanted in (
        ("train --aug fgsm --model encoder --data texts.txt --dry-run", "cse-mocose"),
        ("train --data texts.txt --dry-run", "cse-starter"),
        ("eval encoder", "cse-evaluation"),
        ("bench", "cse-bench"),
        ("inspect", "cse-inspect"),
        ("search encoder query", "cse-search"),
        ("push run a/b", "cse-hub"),
    ):
        refused = core.cse(*words.split())
        assert refused.returncode == 2, (words, refused)
        assert f": install {wanted}" in refused.stderr, (words, refused.stderr)
        assert len(refused.stderr.splitlines()) == 1, refused.stderr


@pytest.mark.parametrize("order", [1, -1], ids=["forward", "backward"])
def test_plugins_install_on_top_in_any_order(
    core: Environment, wheels: dict[str, Path], order: int
) -> None:
    names = [name for name in sorted(wheels) if name != "cse-toolkit"][::order]
    for number, name in enumerate(names):
        core.install(wheels[name])
        if number in (0, len(names) // 2, len(names) - 1):
            _all_active(core, names[: number + 1])


def _all_active(environment: Environment, names: Sequence[str]) -> None:
    done = environment.cse("list-plugins", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["plugins"]
    assert {plugin["status"] for plugin in found} == {"active"}, done.stdout
    listed = {plugin["distribution"] for plugin in found}
    assert listed == {"cse-toolkit", *names}


def _texts(folder: Path) -> str:
    path = folder / "texts.txt"
    path.write_text("\n".join(f"sentence {number} is here" for number in range(20)) + "\n")
    return str(path)
