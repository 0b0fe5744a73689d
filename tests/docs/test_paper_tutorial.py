"""docs/tutorial.md: its files make a plugin, its commands and tests work, and so does its wheel."""

from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest
from cse_testkit.tiny import shared_encoder
from hatchling.builders.wheel import WheelBuilder

from cse_cli.main import run
from tests.docs.pages import DOCS, Page, write_files
from tests.fixtures.packages import check_tests, installed

PAGE = Page(DOCS / "tutorial.md")
COMMANDS = [words for block in PAGE.blocks() for words in block.commands()]
CHEAP = ("--train.precision", "fp32", "--train.max_steps", "2", "--train.batch_size", "8")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_files(PAGE.blocks(), tmp_path)
    for words in COMMANDS:
        if words[0] == "touch":
            (tmp_path / words[1]).touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path / "cse-arccse"


@pytest.fixture
def folder(package: Path) -> Iterator[Path]:
    with installed({"cse-arccse": package}):
        yield package


def test_its_commands_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ["pip", "install", "-e", "cse-arccse"] in COMMANDS
    said: dict[str, str] = {}
    for words in (words for words in COMMANDS if words[0] == "cse"):
        cheap = CHEAP if words[1] == "train" and "--dry-run" not in words else ()
        cheap += ("--model", str(shared_encoder())) if cheap else ()
        assert run([*words[1:], *cheap]) == 0, capsys.readouterr()
        said[" ".join(words[1:5])] = capsys.readouterr().out
    (shown,) = (block.text for block in PAGE.blocks() if block.kind == "text")
    assert shown in said["train --recipe arccse --dry-run"]
    assert "arc, order" in said["list-plugins"]
    mixed = said["train --recipe mocose --loss"]
    assert "loss.order (cse-arccse 0.1.0)" in mixed and "masked-more: made by aug.more" in mixed
    assert "zhang-etal-2022-contrastive" in said["list-plugins --cite arccse"]
    assert (folder.parent / "runs/arccse/model/model.safetensors").is_file()


@pytest.mark.slow
def test_its_tests_pass(folder: Path) -> None:
    assert ["pytest", "cse-arccse/tests"] in COMMANDS
    check_tests(folder / "tests")


def test_its_wheel_is_found_where_it_is_installed(package: Path, tmp_path: Path) -> None:
    assert ["pip", "wheel", "--no-deps", "--wheel-dir", "dist", "./cse-arccse"] in COMMANDS
    (wheel,) = WheelBuilder(str(package)).build(directory=str(tmp_path / "dist"))
    assert ["pip", "install", f"dist/{Path(wheel).name}"] in COMMANDS
    place = tmp_path / "place"
    with ZipFile(wheel) as archive:
        archive.extractall(place)
    assert (place / "cse_arccse/recipes/arccse.toml").is_file()
    (info,) = place.glob("*.dist-info")
    assert "arccse = cse_arccse.plugin" in (info / "entry_points.txt").read_text()
