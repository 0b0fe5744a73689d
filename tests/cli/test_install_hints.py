"""What messages say to type where something is not installed: where the toolkit came from."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cse_cli.plugins.discovery import update_command
from cse_cli.plugins.install_hints import pip_install
from docs.packages import ROOT


@pytest.fixture
def came_from(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let the toolkit have come from somewhere, as ``direct_url.json`` says it."""

    def let(**found: Any) -> None:
        monkeypatch.setattr("cse_cli.plugins.install_hints.origin", lambda: found)

    return let


def checkout(folder: Path, *plugins: str) -> Path:
    for place in (folder, *(folder / "plugins" / name for name in plugins)):
        place.mkdir(parents=True, exist_ok=True)
        (place / "pyproject.toml").touch()
    return folder


def test_a_toolkit_that_came_by_its_name_brings_plugins_by_theirs() -> None:
    assert pip_install("cse-mocose") == "pip install cse-mocose"
    assert pip_install("cse-mocose", "-U") == "pip install -U cse-mocose"
    assert update_command("cse-toolkit>=9,<10") == 'pip install -U "cse-toolkit>=9,<10"'


def test_a_checkout_brings_its_plugins(
    came_from: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = checkout(tmp_path / "the cse", "mocose")
    came_from(url=place.as_uri(), dir_info={"editable": True})
    monkeypatch.chdir(tmp_path)
    assert pip_install("cse-mocose") == "pip install -e 'the cse/plugins/mocose'"
    monkeypatch.chdir(place)
    assert pip_install("cse-mocose") == "pip install -e plugins/mocose"
    assert pip_install("cse-toolkit", "--no-deps") == "pip install --no-deps -e ."
    monkeypatch.chdir(place / "plugins")
    assert pip_install("cse-mocose") == "pip install -e ./mocose"
    (tmp_path / "runs").mkdir()
    monkeypatch.chdir(tmp_path / "runs")
    assert shlex.split(pip_install("cse-mocose"))[3] == str(place / "plugins/mocose")
    assert pip_install("cse-other") == "pip install cse-other", "another author's"
    assert update_command("cse-toolkit>=9").endswith("the cse' to cse-toolkit>=9")
    came_from(url=place.as_uri(), dir_info={})
    assert pip_install("cse-mocose").startswith("pip install '/"), "not editable, as the toolkit"


def test_a_folder_of_wheels_brings_its_plugins(
    came_from: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = tmp_path / "cse_toolkit-0.1.0-py3-none-any.whl"
    (tmp_path / "cse_mocose-0.1.0-py3-none-any.whl").touch()
    came_from(url=wheel.as_uri(), archive_info={})
    monkeypatch.chdir(tmp_path)
    assert pip_install("cse-mocose") == "pip install ./cse_mocose-0.1.0-py3-none-any.whl"
    assert pip_install("cse-hicl") == "pip install cse-hicl"


def test_a_repository_brings_its_plugins(came_from: Any) -> None:
    vcs = {"vcs": "git", "commit_id": "1a2b", "requested_revision": "main"}
    came_from(url="https://example.org/cse.git", vcs_info=vcs)
    wanted = "git+https://example.org/cse.git@main"
    assert shlex.split(pip_install("cse-mocose")) == [
        "pip", "install", f"{wanted}#subdirectory=plugins/mocose"
    ]  # fmt: skip
    assert pip_install("cse-other") == "pip install cse-other"
    assert shlex.split(pip_install("cse-toolkit"))[2] == wanted


@pytest.mark.parametrize("damaged", [{"url": 3, "dir_info": {}}, {"dir_info": {}}, {"url": "x"}])
def test_what_cannot_be_read_is_taken_as_by_name(came_from: Any, damaged: dict[str, Any]) -> None:
    came_from(**damaged)
    assert pip_install("cse-mocose") == "pip install cse-mocose"


def test_the_hint_of_this_installation_names_a_folder_that_there_is() -> None:
    code = "from cse_cli.plugins.install_hints import origin, pip_install as p; import json\n"
    code += "print(json.dumps([origin(), p('cse-mocose')]))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    origin, command = json.loads(done.stdout)
    if "dir_info" not in origin:
        pytest.skip("the toolkit is not installed from a checkout")
    place = ROOT / shlex.split(command)[-1]
    assert (place / "pyproject.toml").is_file() and place.name == "mocose"
