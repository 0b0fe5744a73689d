"""Fill a folder with the wheels that a machine without a network lacks for ``make gpu``.

    python -m tests.gpu.wheels FOLDER [--python 3.12] [--platform TAG ...] [--has FILE] [--list]

The project's own distributions are built; what they need comes from the package index as this
environment has it, but for torch, transformers and sentence-transformers and what comes with torch
alone, which the machine must have. Python and platform are those of that machine; this one's by
default. What else it has, a file names, as ``pip list --format=freeze`` there prints it: that and
what only that needs is left out. A line without a version counts as new enough, so name in this way
what is large alone (numpy, scipy, pandas, pyarrow, scikit-learn, tokenizers). ``make gpu
WHEELS=FOLDER`` installs from the folder.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
THERE = ("torch", "triton", "transformers", "sentence-transformers")
"""Distributions that the machine has; names that begin with nvidia or cuda too."""
PLATFORMS = tuple(f"manylinux_2_{minor}_x86_64" for minor in (28, 27, 24, 17)) + (
    "manylinux2014_x86_64",
)
"""What is taken for another version of Python; pip matches each exactly."""
TESTS = ("pytest",)
"""What the checks need beside what the project needs."""


def own() -> dict[str, list[str]]:
    """Return the project's distributions, and what each requires."""
    found = {}
    for path in (ROOT / "pyproject.toml", *sorted(ROOT.glob("plugins/*/pyproject.toml"))):
        project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
        found[str(canonicalize_name(project["name"]))] = project.get("dependencies", [])
    return found


def needed(python: str | None = None, has: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return name and version of every distribution that the project needs, and that is here.

    Args:
        python: Version of the machine's Python, ``3.12``.
        has: Distributions that the machine has, and their versions; empty where not known.

    Raises:
        SystemExit: If one is not installed here.
    """
    mine = own()
    there = {str(canonicalize_name(name)): version for name, version in (has or {}).items()}
    environment: dict[str, Any] = {**default_environment(), "extra": ""}
    if python is not None:
        environment.update(python_version=python, python_full_version=f"{python}.0")
    found: dict[str, str] = {}
    waiting = [each for lines in mine.values() for each in lines] + list(TESTS)
    seen: set[str] = set()
    while waiting:
        requirement = Requirement(waiting.pop())
        name = str(canonicalize_name(requirement.name))
        if requirement.marker is not None and not requirement.marker.evaluate(environment):
            continue
        extras = sorted(requirement.extras)
        if name in mine or is_there(name) or f"{name}{extras}" in seen:
            continue
        version = there.get(name)
        if version is not None and (not version or requirement.specifier.contains(version)):
            continue
        seen.add(f"{name}{extras}")
        try:
            here = distribution(name)
        except PackageNotFoundError:
            raise SystemExit(f"{name} is not installed here: what it needs is not known") from None
        found[name] = here.version
        waiting += of_extras(here.requires or [], extras, environment)
    return dict(sorted(found.items()))


def is_there(name: str) -> bool:
    """Tell whether the machine has a distribution already."""
    return name in THERE or re.match(r"(nvidia|cuda)\b", name) is not None


def of_extras(
    lines: Iterable[str], extras: Iterable[str], environment: dict[str, Any]
) -> Iterator[str]:
    """Yield the requirements that hold with these extras or without any."""
    for line in lines:
        marker = Requirement(line).marker
        asked = ({**environment, "extra": extra} for extra in ("", *extras))
        if marker is None or any(marker.evaluate(each) for each in asked):
            yield line.partition(";")[0]


def build(folder: Path) -> None:
    """Build the project's distributions."""
    plugins = sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))
    words = ["wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder)]
    pip(*words, str(ROOT), *map(str, plugins))


def fetch(
    folder: Path, wanted: dict[str, str], python: str | None, platforms: Iterable[str]
) -> None:
    """Download wheels of exactly these versions."""
    words = ["download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", str(folder)]
    words += ["--python-version", python] if python else []
    for tag in platforms:
        words += ["--platform", tag]
    pip(*words, *(f"{name}=={version}" for name, version in wanted.items()))


def pip(*words: str) -> None:
    """Run pip.

    Raises:
        SystemExit: If it fails.
    """
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *words]
    if subprocess.run(command, check=False).returncode:
        raise SystemExit(f"pip {words[0]} failed")


def main() -> None:
    """Fill the folder."""
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("folder", type=Path)
    made.add_argument("--python", help="version of the machine's Python, 3.12")
    made.add_argument("--platform", nargs="+", help="its tags, manylinux_2_28_x86_64")
    made.add_argument("--has", type=Path, help="file of what it has, NAME==VERSION or NAME a line")
    made.add_argument("--list", action="store_true", help="name what would be fetched, and end")
    options = made.parse_args()
    lines = options.has.read_text(encoding="utf-8").splitlines() if options.has else []
    pairs = (line.strip().partition("==") for line in lines if line.strip())
    has = {name: version for name, _, version in pairs}
    wanted = needed(options.python, has)
    if options.list:
        print("\n".join(f"{name}=={version}" for name, version in wanted.items()))
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    build(options.folder)
    platforms = options.platform or (PLATFORMS if options.python else ())
    fetch(options.folder, wanted, options.python, platforms)
    wheels = list(options.folder.glob("*.whl"))
    size = sum(wheel.stat().st_size for wheel in wheels) / 2**20
    print(f"{len(wheels)} wheels, {size:.0f} MB, in {options.folder}")


if __name__ == "__main__":
    main()
