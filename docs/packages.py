"""The packages of the repository: which module imports which, and the picture of them.

``tests/architecture`` checks the same graph that ``docs/generate.py`` draws. Every import counts:
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
    "__init__", "capabilities", "errors", "functional", "options", "parts",
    "records", "schedule", "specs", "token_batch", "types",
)  # fmt: skip
"""Modules at the root of the core: what an author imports."""
PACKAGES = (
    "contract", "runtime", "registry", "recipes", "data", "tokenization", "encoders", "parts",
    "models", "builtins", "engine", "evaluation", "training",
)  # fmt: skip
"""Packages of the core in their order: each imports only earlier ones."""
TOP = ("cse", "cse_cli", "plugins")
"""What stands on the core."""
IN_A_BOX = {
    "cse": "import cse",
    "cse_cli": "the command cse",
    "plugins": "papers, suites, tools",
    "contract": "what authors import",
    "runtime": "process and machine",
    "registry": "installed plugins",
    "recipes": "checked compositions",
    "data": "training texts",
    "tokenization": "texts to tokens",
    "encoders": "tokens to states",
    "parts": "base classes of parts",
    "models": "texts to vectors",
    "builtins": "parts of no paper",
    "engine": "a training step",
    "evaluation": "suites and dev sets",
    "training": "a run",
}
"""The second line of each box of the picture: what it is for, in a few words."""


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
    known, index, low, sentence_encoder, found = modules(), {}, {}, [], []  # type: ignore[var-annotated]

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        sentence_encoder.append(name)
        for other in known[name].imports:
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in sentence_encoder:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            group = sentence_encoder[sentence_encoder.index(name) :]
            del sentence_encoder[sentence_encoder.index(name) :]
            if len(group) > 1:
                found.append(sorted(group))

    for name in known:
        if name not in index:
            visit(name)
    return found


def purpose(package: str) -> str:
    """Return what a package is for: the first line of its docstring."""
    if package == "contract":
        return "hooks, records, options and data types: what an author imports"
    if package == "parts":
        return "the base classes of parts, in cse_core/parts.py"
    tree = ast.parse((ROOT / CORE / package / "__init__.py").read_text(encoding="utf-8"))
    first = (ast.get_docstring(tree) or "").splitlines()[0].rstrip(".")
    return first[:1].lower() + first[1:]


def floors() -> list[list[str]]:
    """Return the packages by the length of their longest way down, the contract's floor first."""
    imports, height = package_imports(), dict[str, int]()
    for package in PACKAGES:
        height[package] = 1 + max((height[other] for other in imports[package]), default=-1)
    return [
        [package for package in PACKAGES if height[package] == floor]
        for floor in range(max(height.values()) + 1)
    ]


def arrows() -> list[tuple[str, str]]:
    """Return the imports between packages without those that follow from others."""
    imports = package_imports()
    below = {package: set(others) for package, others in imports.items()}
    for package in PACKAGES:
        for other in imports[package]:
            below[package] |= below[other]
    return [
        (package, other)
        for package in PACKAGES
        for other in PACKAGES
        if other in imports[package]
        and not any(other in below[between] for between in imports[package] - {other})
    ]


WIDTH, BOX, ROW, WIDE = 760, 46, 78, 172


def picture() -> str:
    """Return the packages as an SVG: arrows go down, to what each package imports."""
    levels = floors()
    height = ROW * (len(levels) + 1) + 20
    place: dict[str, tuple[float, float]] = {}
    for floor, packages in enumerate(levels):
        for number, package in enumerate(packages):
            x = WIDTH * (number + 1) / (len(packages) + 1)
            place[package] = x, height - 20 - BOX / 2 - ROW * floor
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="sans-serif" font-size="13">',
        "<title>The packages of cse_core: each imports only packages below it</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#667"/></marker></defs>',
    ]
    floor_of = {package: floor for floor, packages in enumerate(levels) for package in packages}
    for upper, lower in arrows():
        (x1, y1), (x2, y2) = place[upper], place[lower]
        if floor_of[upper] - floor_of[lower] > 1:  # around what lies between, on the right
            x1, x2, out = x1 + WIDE / 2, x2 + WIDE / 2, WIDTH - 10
            path = f"M{x1:.0f} {y1:.0f}C{out} {y1:.0f} {out} {y2:.0f} {x2:.0f} {y2:.0f}"
        else:
            path = (
                f"M{x1:.0f} {y1 + BOX / 2:.0f}C{x1:.0f} {y1 + ROW / 2:.0f} {x2:.0f} "
                f"{y2 - ROW / 2:.0f} {x2:.0f} {y2 - BOX / 2:.0f}"
            )
        drawn.append(
            f'<path d="{path}" fill="none" stroke="#667" stroke-width="1.2" '
            'marker-end="url(#tip)"/>'
        )
    top = height - 20 - BOX / 2 - ROW * len(levels)
    for number, name in enumerate(TOP):
        x = WIDTH * (number + 1) / (len(TOP) + 1)
        drawn += _box(name, x, top, "#fff")
    for package, (x, y) in place.items():
        drawn += _box(package, x, y, "#eef3fb")
    return "\n".join([*drawn, "</svg>"]) + "\n"


def _box(name: str, x: float, y: float, fill: str) -> list[str]:
    return [
        f'<rect x="{x - WIDE / 2:.0f}" y="{y - BOX / 2:.0f}" width="{WIDE}" height="{BOX}" rx="6" '
        f'fill="{fill}" stroke="#35507a"/>',
        f'<text x="{x:.0f}" y="{y - 3:.0f}" text-anchor="middle" font-weight="bold">{name}</text>',
        f'<text x="{x:.0f}" y="{y + 14:.0f}" text-anchor="middle" fill="#556">'
        f"{IN_A_BOX[name]}</text>",
    ]


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
    if parts[1:] == ["parts"]:
        return "parts"
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
