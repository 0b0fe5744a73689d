"""What a plugin may import of the toolkit: three doors, and no other plugin."""

from __future__ import annotations

import ast
import pkgutil
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

import cse
import cse_core

TOOLKIT = ("cse_core", "cse_engine", "cse_defaults", "cse_cli", "cse")
"""The packages of the toolkit."""


@cache
def doors() -> frozenset[str]:
    """Return the modules of the doors: ``cse``, ``cse_cli.api`` and the root of ``cse_core``."""
    root = (info.name for info in pkgutil.iter_modules(cse_core.__path__) if not info.ispkg)
    inside = (*(f"cse_core.{name}" for name in root), *(f"cse.{name}" for name in cse.__all__))
    return frozenset(["cse", "cse_cli.api", "cse_core", *inside])


def behind_the_doors(package: str) -> dict[str, str]:
    """List a package's imports from the toolkit or other plugins that bypass the doors.

    Returns:
        Each module with the file and line that imports it first.
    """
    points = (*entry_points(group="cse"), *entry_points(group="cse.commands"))
    plugins = {point.module.partition(".")[0] for point in points} - {package, "cse_defaults"}
    ours = {*TOOLKIT, *plugins} - {package}
    allowed = doors()
    places: dict[str, str] = {}
    for module, place in _of_package(package):
        if module.partition(".")[0] in ours and module not in allowed:
            places.setdefault(module, place)
    return places


def others_imported(package: str) -> dict[str, str]:
    """List the top-level modules of others that a package imports, each with its first place."""
    ours = {package, *TOOLKIT, *sys.stdlib_module_names}
    places: dict[str, str] = {}
    for module, place in _of_package(package):
        if (top := module.partition(".")[0]) not in ours:
            places.setdefault(top, place)
    return places


def _of_package(package: str) -> Iterator[tuple[str, str]]:
    """Yield the modules that the files of a package import, with file and line."""
    spec = find_spec(package)
    for folder in spec.submodule_search_locations or () if spec is not None else ():
        for path in sorted(Path(folder).rglob("*.py")):
            for module, line in _imports(path):
                yield module, f"{path.relative_to(Path(folder).parent)}:{line}"


@cache
def _is_module(name: str) -> bool:
    try:
        return name.partition(".")[0] in TOOLKIT and find_spec(name) is not None
    except ModuleNotFoundError:  # its parent is a module, or is not installed
        return False


def _imports(path: Path) -> Iterator[tuple[str, int]]:
    """Yield the modules that a file imports, those inside functions too, with their lines."""
    todo: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:  # a module of the package, or what it has
                inner = f"{node.module}.{alias.name}"
                yield inner if _is_module(inner) else node.module, node.lineno
        elif not isinstance(node, ast.expr):  # an expression imports nothing
            todo += [*ast.iter_child_nodes(node)][::-1]
