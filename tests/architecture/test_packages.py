"""The packages hold: no upward import, no cycle, nothing at the root that is not contract."""

import subprocess
import sys

import pytest

from docs.packages import CONTRACT, CORE, PACKAGES, ROOT, cycles, modules, package_imports
from tests.architecture.weight import BOUNDS

MAX_MODULE_LINES = 500
LIGHT = ("registry", "recipes", "data")
"""Packages that import no torch, beside the contract's light half."""
HEAVY_CONTRACT = {"types", "token_batch", "functional", "memory", "parts", "protocols"}
COMMAND_LINE = (
    "terminal", "machine", "plugins", "options", "texts", "models", "cards", "training", "commands",
)  # fmt: skip
"""Packages of the command line in their order: each imports only itself and earlier ones."""
CARD = {"cse", "cse_core", "cse_cli", "docs", "plugins", "tests"}
"""Folders at the top of the repository, beside hidden ones."""


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_imports_only_earlier_packages(package: str) -> None:
    earlier = set(PACKAGES[: PACKAGES.index(package)])
    upward = [
        f"{module.path.relative_to(ROOT)}:{line} imports {other}"
        for module in modules().values()
        if module.package == package
        for other, line in module.imports.items()
        if modules()[other].package not in earlier | {package}
    ]
    assert not upward
    assert package_imports()[package] <= earlier


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


def test_the_root_of_the_core_is_the_contract() -> None:
    assert {path.stem for path in (ROOT / CORE).glob("*.py")} == set(CONTRACT)
    folders = {path.parent.name for path in (ROOT / CORE).glob("*/__init__.py")}
    assert folders == set(PACKAGES) - {"contract"}


def test_every_package_stays_within_its_bound() -> None:
    sizes = {bound.name.strip(): (bound.size(), bound.bound) for bound in BOUNDS}
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
        or (module.package == "contract" and module.path.stem not in HEAVY_CONTRACT)
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
