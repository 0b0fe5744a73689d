"""The packages hold: no upward import, no cycle, nothing at the root that is not contract."""

import subprocess
import sys

import pytest

from docs.packages import CONTRACT, DOORS, PACKAGES, ROOMS, ROOT, cycles, modules
from tests.architecture.weight import BOUNDS

MAX_MODULE_LINES = 500
LIGHT = ("cse_core.registry", "cse_engine.compose", "cse_defaults.documents", "cse_defaults.texts")
"""Packages that import no torch, beside the contract's light half."""
HEAVY_CONTRACT = {
    "types", "token_batch", "functional", "memory", "parts", "protocols", "weights",
}  # fmt: skip
COMMAND_LINE = (
    "terminal", "machine", "plugins", "options", "texts", "models", "cards", "training", "commands",
)  # fmt: skip
"""Packages of the command line in their order: each imports only itself and earlier ones."""
CARD = {"cse", *ROOMS, "cse_cli", "docs", "plugins", "tests"}
"""Folders at the top of the repository, beside hidden ones."""


def imported(room: str) -> dict[str, set[str]]:
    """List the modules outside a room that its modules import, by the room of each."""
    others: dict[str, set[str]] = {}
    for module in modules().values():
        if module.name.partition(".")[0] == room:
            for name in module.imports:
                others.setdefault(name.partition(".")[0], set()).add(f"{module.name}: {name}")
    others.pop(room, None)
    return others


@pytest.mark.parametrize("room", ROOMS)
def test_the_wall(room: str) -> None:
    """Imports inside functions and for type checkers alone count too."""
    beyond = {other: names for other, names in imported(room).items() if other not in DOORS[room]}
    assert beyond == {}


def test_a_default_plugin_imports_no_other() -> None:
    defaults = ROOMS["cse_defaults"]
    for module in modules().values():
        if module.package in defaults:
            others = {modules()[name].package for name in module.imports}.intersection(defaults)
            assert others <= {module.package}, module.name


@pytest.mark.parametrize("room", ["cse_core", "cse_engine"])
def test_a_package_imports_only_earlier_packages_of_its_room(room: str) -> None:
    order = ROOMS[room]
    upward = [
        f"{module.name}:{line} imports {other}"
        for module in modules().values()
        if module.package in order
        for other, line in module.imports.items()
        if modules()[other].package in order
        and order.index(modules()[other].package) > order.index(module.package)
    ]
    assert upward == []


def test_a_package_of_the_command_line_imports_only_those_above_it() -> None:
    root = ROOT / "cse_cli"
    assert {path.parent.name for path in root.glob("*/__init__.py")} == set(COMMAND_LINE)
    assert {path.stem for path in root.glob("*.py")} == {"__init__", "api", "main"}

    def place(name: str) -> int:
        return [*COMMAND_LINE, "api", "main"].index(name.split(".")[1])

    upward = [
        f"{module.name}:{line} imports {other}"
        for module in modules().values()
        if module.package == "cse_cli" and module.name.count(".") == 2
        for other, line in module.imports.items()
        if other.startswith("cse_cli.") and place(other) > place(module.name)
    ]
    assert upward == []


def test_no_modules_import_each_other() -> None:
    assert cycles() == []


def test_every_folder_of_an_inner_room_is_a_package_of_it() -> None:
    for room, packages in ROOMS.items():
        folders = {f"{room}.{path.parent.name}" for path in (ROOT / room).glob("*/__init__.py")}
        assert folders | ({room} if room == CONTRACT else set()) == set(packages)


def test_every_package_stays_within_its_bound() -> None:
    sizes = {bound.name: (bound.size(), bound.most) for bound in BOUNDS}
    assert {name: found for name, found in sizes.items() if found[0] > found[1]} == {}


def test_modules_are_short() -> None:
    long = {
        module.name: count
        for module in modules().values()
        if module.package in PACKAGES
        and (count := len(module.path.read_text(encoding="utf-8").splitlines())) > MAX_MODULE_LINES
    }
    assert not long


def test_the_command_line_knows_no_plugin_and_plugins_know_no_other() -> None:
    brought = {path.name for path in ROOT.glob("plugins/*/cse_*")}
    for module in modules().values():
        if module.package not in {"cse", "cse_cli", *brought}:
            continue
        others = {modules()[name].package for name in module.imports} & brought
        assert others <= {module.package}, module.name


def test_no_shipped_module_imports_the_tests() -> None:
    shipped = {"cse", "cse_cli", *PACKAGES, *(path.name for path in ROOT.glob("plugins/*/cse_*"))}
    for module in modules().values():
        if module.package in shipped:
            packages = {modules()[name].package for name in module.imports}
            assert not packages & {"tests", "docs", "tools"}, module.name


def test_listings_and_plans_import_no_torch() -> None:
    light = [
        module.name
        for module in modules().values()
        if module.package in LIGHT
        or (module.package == CONTRACT and module.path.stem not in HEAVY_CONTRACT)
    ]
    code = f"import sys, importlib\nfor name in {light}: importlib.import_module(name)\n"
    code += "print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_the_top_level_is_that_of_the_card() -> None:
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if tracked.returncode:
        pytest.skip("not a git checkout: what is tracked is not known")
    folders = {line.split("/")[0] for line in tracked.stdout.splitlines() if "/" in line}
    assert {name for name in folders if not name.startswith(".")} == CARD
