"""The packages of the repository: which module imports which.

``tests/architecture`` checks their order, ``docs/generate.py`` lists them. Every import counts:
those inside functions and those for type checkers alone too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
CORE = "cse_core"
CONTRACT = (
    "__init__", "capabilities", "errors", "files", "functional", "hookspecs", "loading",
    "memory", "options", "parts", "protocols", "records", "reporter", "run_info", "schedule",
    "suites", "texts",
    "token_batch", "types",
)  # fmt: skip
"""Modules at the root of the core: what an author imports."""
PACKAGES = (
    "contract", "runtime", "registry", "recipes", "data", "tokenization", "encoders",
    "models", "builtins", "engine", "evaluation", "training",
)  # fmt: skip
"""Packages of the core in their order: each imports only earlier ones."""


@dataclass(frozen=True)
class Module:
    """A file of Python and what it imports.

    Attributes:
        name: Dotted name; files that are run and not imported have their path's.
        path: Where it is.
        package: A package of the core, ``cse_cli``, ``cse``, a plugin's, ``tests``, ``docs`` or
            ``tools``.
        imports: Modules of the repository that it imports, by the line that does.
    """

    name: str
    path: Path
    package: str
    imports: Mapping[str, int]


@cache
def modules() -> dict[str, Module]:
    """Return every module of the repository by its name."""
    paths = {name: path for path, name in _files()}
    return {
        name: Module(name, path, _package(name, path), dict(_imports(name, path, paths)))
        for name, path in paths.items()
    }


def package_imports() -> dict[str, frozenset[str]]:
    """Return the packages that each package of the core imports."""
    found: dict[str, set[str]] = {package: set() for package in PACKAGES}
    known = modules()
    for module in known.values():
        if module.package in found:
            found[module.package] |= {known[name].package for name in module.imports} - {
                module.package
            }
    return {package: frozenset(others) for package, others in found.items()}


def cycles() -> list[list[str]]:
    """Return the groups of modules that import each other, each sorted by name."""
    known, index, low, stack, found = modules(), {}, {}, [], []  # type: ignore[var-annotated]

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in known[name].imports:
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            group = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(group) > 1:
                found.append(sorted(group))

    for name in known:
        if name not in index:
            visit(name)
    return found


def purpose(package: str) -> str:
    """Return what a package is for: the first line of its docstring."""
    if package == "contract":
        return "hooks, records, options, data types and base classes: what an author imports"
    tree = ast.parse((ROOT / CORE / package / "__init__.py").read_text(encoding="utf-8"))
    first = (ast.get_docstring(tree) or "").splitlines()[0].rstrip(".")
    return first[:1].lower() + first[1:]


def _files() -> Iterator[tuple[Path, str]]:
    for folder in (CORE, "cse_cli", "cse", "tests", "docs"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path, _dotted(path.relative_to(ROOT))
    for path in sorted(ROOT.glob("plugins/*/**/*.py")):
        inside = path.relative_to(ROOT).parts
        imported = inside[2].startswith("cse_")
        yield path, _dotted(Path(*inside[2 if imported else 0 :]))


def _dotted(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _package(name: str, path: Path) -> str:
    parts = name.split(".")
    if parts[0] != CORE:
        return parts[0] if parts[0] != "plugins" else parts[2]
    inside = path.relative_to(ROOT / CORE).parts
    return "contract" if len(inside) == 1 else inside[0]


def _imports(name: str, path: Path, known: Mapping[str, Path]) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            wanted = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            wanted = [f"{node.module}.{alias.name}" for alias in node.names]
            wanted = [each if each in known else str(node.module) for each in wanted]
        else:
            continue
        for other in wanted:
            if other in known and other != name:
                yield other, node.lineno
