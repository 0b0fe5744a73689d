"""The packages of the command line, in their order: each imports only those above it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

CLI = Path(__file__).resolve().parents[2] / "cse_cli"
ORDER = (
    "terminal", "machine", "plugins", "options", "texts", "models", "cards", "training", "commands",
)  # fmt: skip


def imported(file: Path) -> Iterator[str]:
    """Yield the modules of the command line that a file imports, inside functions too."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cse_cli"):
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.startswith("cse_cli."))


def test_the_folders_are_the_packages() -> None:
    folders = {path.name for path in CLI.iterdir() if path.is_dir() and path.name[0] != "_"}
    assert folders == set(ORDER)
    assert {path.name for path in CLI.glob("*.py")} == {"__init__.py", "api.py", "main.py"}


@pytest.mark.parametrize("package", ORDER)
def test_a_package_imports_only_those_above_it(package: str) -> None:
    allowed = ORDER[: ORDER.index(package) + 1]
    wrong = [
        f"{file.relative_to(CLI)}: {name}"
        for file in sorted((CLI / package).rglob("*.py"))
        for name in imported(file)
        if name.split(".")[1] not in allowed
    ]
    assert wrong == []
