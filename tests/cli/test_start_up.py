"""Commands that neither train nor encode stay light."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from cse_cli.plugins.installed import OWN_COMMANDS
from tests.fixtures.command_line import call_installed

HEAVY = ("torch", "transformers", "datasets", "scipy", "sklearn", "accelerate")
LIGHT = [
    ["--help"],
    ["--version"],
    ["list-plugins"],
    ["list-plugins", "--json"],
    ["show-plugin", "builtins"],
    ["list-recipes"],
    ["train", "--help"],
    ["bench", "--help"],
    ["eval", "--help"],
    ["train", "--dry-run"],
    ["train", "--dry-run", "--json", "--loss", "infonce", "--pool", "mean"],
    ["data", "list"],
    ["data", "stats", "starter", "--model", "starter"],
]
LISTINGS = [
    ["list-plugins"],
    ["list-plugins", "--json"],
    ["show-plugin", "mocose"],
    ["show-plugin", "mocose", "--json"],
    ["list-recipes"],
    ["list-recipes", "--json"],
]
SCRIPT = """
import sys
from cse_cli.main import run
code = run(sys.argv[2:])
heavy = [name for name in sys.argv[1].split(",") if name in sys.modules]
print("loaded:", *heavy, file=sys.stderr)
sys.exit(code)
"""


def loaded(words: Sequence[str], names: Sequence[str], cwd: Path) -> list[str]:
    """Return which of some modules a command imports that prints something and writes nothing."""
    command = [sys.executable, "-c", SCRIPT, ",".join(names), *words]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert list(cwd.iterdir()) == []
    title, *found = done.stderr.splitlines()[-1].split()
    assert title == "loaded:"
    return found


@pytest.mark.parametrize("words", LIGHT, ids=" ".join)
def test_nothing_heavy_is_imported(words: list[str], tmp_path: Path) -> None:
    assert loaded(words, HEAVY, tmp_path) == []


@pytest.mark.parametrize("words", LISTINGS, ids=" ".join)
def test_a_listing_imports_what_it_prints_with_alone(words: list[str], tmp_path: Path) -> None:
    others = [
        f"cse_cli.commands.{name.replace('-', '_')}" for name in OWN_COMMANDS if " " not in name
    ]
    own = f"cse_cli.commands.{words[0].replace('-', '_')}"
    assert own in others
    tables = [] if "--json" not in words else ["rich"]
    unused = ["packaging", "rich._emoji_codes", *tables]
    assert loaded(words, [*others, *unused], tmp_path) == [own]


def test_version_through_the_installed_command(tmp_path: Path) -> None:
    said = call_installed("--version", cwd=tmp_path)
    assert said.code == 0
    assert said.out.startswith("cse-toolkit ")


def test_help_names_every_command(tmp_path: Path) -> None:
    said = call_installed("--help", cwd=tmp_path)
    for name in ("list-plugins", "show-plugin", "list-recipes", "show-recipe", "train", "bench",
                 "eval", "encode", "search", "data"):  # fmt: skip
        assert name in said.out


def test_a_reader_that_stops_early_is_no_error(tmp_path: Path) -> None:
    command = f"{Path(sys.executable).with_name('cse')} data show starter --rows 2000 | head -1"
    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "row 1\n"
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr
