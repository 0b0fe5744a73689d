"""The packages of the repository: which module imports which.

``tests/architecture`` checks their order, ``docs/generate.py`` lists them. Every import counts:
those inside functions and those for type checkers alone too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
CONTRACT = "cse_core"
"""The package whose root modules are what an author imports."""
ROOMS = {
    "cse_core": ("cse_core", "cse_core.registry"),
    "cse_engine": (
        "cse_engine.runtime", "cse_engine.compose", "cse_engine.step", "cse_engine.run",
    ),
    "cse_defaults": (
        "cse_defaults.basics", "cse_defaults.documents", "cse_defaults.texts",
        "cse_defaults.transformers", "cse_defaults.words",
    ),
}  # fmt: skip
"""The packages of the toolkit's inner rooms, each room's in the order of its imports."""
DOORS = {"cse_core": set(), "cse_engine": {"cse_core"}, "cse_defaults": {"cse_core"}}
"""The rooms that each room may import beside itself: the wall."""
PACKAGES = tuple(package for packages in ROOMS.values() for package in packages)


@dataclass(frozen=True)
class Module:
    """A file of Python and what it imports.

    Attributes:
        name: Dotted name; files that are run and not imported have their path's.
        path: Where it is.
        package: One of ``PACKAGES``, ``cse_cli``, ``cse``, a plugin's, ``tests`` or ``docs``.
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
        name: Module(name, path, _package(name), dict(_imports(name, path, paths)))
        for name, path in paths.items()
    }


def package_imports() -> dict[str, frozenset[str]]:
    """List the packages of the inner rooms that each of them imports."""
    imports: dict[str, set[str]] = {package: set() for package in PACKAGES}
    for module in modules().values():
        if module.package in imports:
            others = {modules()[name].package for name in module.imports}
            imports[module.package] |= others - {module.package}
    return {package: frozenset(others) for package, others in imports.items()}


def cycles() -> list[list[str]]:
    """Return the groups of modules that import each other, each sorted by name."""
    known, index, low, stack, groups = modules(), {}, {}, [], []  # type: ignore[var-annotated]

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
                groups.append(sorted(group))

    for name in known:
        if name not in index:
            visit(name)
    return groups


def statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield all statements, those inside others too: an expression holds none."""
    for node in body:
        yield node
        for inside in ("body", "orelse", "finalbody", "handlers", "cases"):
            yield from statements(getattr(node, inside, ()))


def folder(package: str) -> str:
    """Name the folder of a package, seen from the repository."""
    return package.replace(".", "/") + "/"


def purpose(package: str) -> str:
    """Say what a package is for: the first line of its docstring."""
    if package == CONTRACT:
        return "the contract: hooks, records, options, data types and base classes"
    tree = ast.parse((ROOT / folder(package) / "__init__.py").read_text(encoding="utf-8"))
    first = (ast.get_docstring(tree) or "").splitlines()[0].rstrip(".")
    return first[:1].lower() + first[1:]


def _files() -> Iterator[tuple[Path, str]]:
    for top in (*ROOMS, "cse_cli", "cse", "tests", "docs"):
        for path in sorted((ROOT / top).rglob("*.py")):
            yield path, _dotted(path.relative_to(ROOT))
    for path in sorted(ROOT.glob("plugins/*/**/*.py")):
        inside = path.relative_to(ROOT).parts
        imported = inside[2].startswith("cse_")
        yield path, _dotted(Path(*inside[2 if imported else 0 :]))


def _dotted(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _package(name: str) -> str:
    parts = name.split(".")
    if parts[0] == "plugins":
        return parts[2]
    inside = ".".join(parts[:2])
    return inside if inside in PACKAGES else parts[0]


def _imports(name: str, path: Path, known: Mapping[str, Path]) -> Iterator[tuple[str, int]]:
    for node in statements(ast.parse(path.read_text(encoding="utf-8")).body):
        if isinstance(node, ast.Import):
            wanted = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            wanted = [f"{node.module}.{alias.name}" for alias in node.names]
            wanted = [target if target in known else str(node.module) for target in wanted]
        else:
            continue
        for other in wanted:
            if other in known and other != name:
                yield other, node.lineno
