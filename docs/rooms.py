"""The rooms of the repository: which module imports which, and the picture of them.

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
    "__init__", "capabilities", "data_records", "errors", "functional", "options", "parts",
    "records", "schedule", "specs", "token_batch", "types",
)  # fmt: skip
"""Modules at the root of the core: what an author imports."""
ROOMS = (
    "contract", "runtime", "registry", "recipes", "data", "tokenization", "encoders", "parts",
    "models", "builtins", "engine", "evaluation", "training",
)  # fmt: skip
"""Rooms of the core in their order: each imports only earlier ones."""
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
        room: A room of the core, ``cse_cli``, ``cse``, a plugin's package, ``tests``, ``docs`` or
            ``tools``.
        imports: Modules of the repository that it imports, by the line that does.
    """

    name: str
    path: Path
    room: str
    imports: Mapping[str, int]


@cache
def modules() -> dict[str, Module]:
    """Return every module of the repository by its name."""
    paths = {name: path for path, name in _files()}
    return {
        name: Module(name, path, _room(name, path), dict(_imports(name, path, paths)))
        for name, path in paths.items()
    }


def room_imports() -> dict[str, frozenset[str]]:
    """Return the rooms that each room of the core imports."""
    found: dict[str, set[str]] = {room: set() for room in ROOMS}
    known = modules()
    for module in known.values():
        if module.room in found:
            found[module.room] |= {known[name].room for name in module.imports} - {module.room}
    return {room: frozenset(others) for room, others in found.items()}


def circles() -> list[list[str]]:
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


def lines(room: str) -> int:
    """Return the lines of a room of the core, all in all."""
    return sum(
        len(module.path.read_text(encoding="utf-8").splitlines())
        for module in modules().values()
        if module.room == room
    )


def purpose(room: str) -> str:
    """Return what a room is for: the first line of its package's docstring."""
    if room == "contract":
        return "hooks, records, options and data types: what an author imports"
    if room == "parts":
        return "the base classes of parts, in cse_core/parts.py"
    tree = ast.parse((ROOT / CORE / room / "__init__.py").read_text(encoding="utf-8"))
    first = (ast.get_docstring(tree) or "").splitlines()[0].rstrip(".")
    return first[:1].lower() + first[1:]


def floors() -> list[list[str]]:
    """Return the rooms by the length of their longest way down, the contract's floor first."""
    imports, height = room_imports(), dict[str, int]()
    for room in ROOMS:
        height[room] = 1 + max((height[other] for other in imports[room]), default=-1)
    return [
        [room for room in ROOMS if height[room] == floor]
        for floor in range(max(height.values()) + 1)
    ]


def arrows() -> list[tuple[str, str]]:
    """Return the imports between rooms without those that follow from others."""
    imports = room_imports()
    below = {room: set(others) for room, others in imports.items()}
    for room in ROOMS:
        for other in imports[room]:
            below[room] |= below[other]
    return [
        (room, other)
        for room in ROOMS
        for other in ROOMS
        if other in imports[room]
        and not any(other in below[between] for between in imports[room] - {other})
    ]


WIDTH, BOX, ROW, WIDE = 760, 46, 78, 172


def picture() -> str:
    """Return the rooms as an SVG: a room imports those that its arrows reach, all below it."""
    levels = floors()
    height = ROW * (len(levels) + 1) + 20
    place: dict[str, tuple[float, float]] = {}
    for floor, rooms in enumerate(levels):
        for number, room in enumerate(rooms):
            x = WIDTH * (number + 1) / (len(rooms) + 1)
            place[room] = x, height - 20 - BOX / 2 - ROW * floor
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="sans-serif" font-size="13">',
        "<title>The rooms of cse_core: each imports only rooms below it</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#667"/></marker></defs>',
    ]
    floor_of = {room: floor for floor, rooms in enumerate(levels) for room in rooms}
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
    for room, (x, y) in place.items():
        drawn += _box(room, x, y, "#eef3fb")
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
        package = inside[2].startswith("cse_")
        yield path, _dotted(Path(*inside[2 if package else 0 :]))


def _dotted(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _room(name: str, path: Path) -> str:
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
