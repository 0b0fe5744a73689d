"""Fill a folder with the wheels that a machine without a network lacks for ``make gpu``.

    python -m tests.gpu.wheels FOLDER [--has FILE] [--list]

The project's own distributions are built; what they need comes from the package index as this
environment has it, but for torch, transformers and sentence-transformers and what comes with torch
alone, which the machine must have, with this version of Python. What else it has, a file names, a
line each (``NAME==VERSION``, as ``pip list --format=freeze`` prints it, or ``NAME``): that and what
only that needs is left out. ``make gpu WHEELS=FOLDER`` installs from the folder.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
THERE = re.compile(r"(torch|triton|transformers|sentence-transformers)$|(nvidia|cuda)\b")
"""Distributions that the machine has."""


def own() -> dict[str, list[str]]:
    """Return the project's distributions, and what each requires."""
    found = {}
    for path in (ROOT / "pyproject.toml", *sorted(ROOT.glob("plugins/*/pyproject.toml"))):
        project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
        found[canonicalize_name(project["name"])] = project.get("dependencies", [])
    return found


def needed(has: Iterable[str] = ()) -> dict[str, str]:
    """Return name and version of every distribution that the project needs, and that is here."""
    mine, left_out = own(), {canonicalize_name(line.partition("==")[0].strip()) for line in has}
    waiting = [("pytest", "")]
    waiting += [(line, "") for lines in mine.values() for line in lines]
    seen, found = set(waiting), dict[str, str]()
    while waiting:
        line, extra = waiting.pop()
        requirement = Requirement(line)
        name = canonicalize_name(requirement.name)
        wanted = requirement.marker is None or requirement.marker.evaluate({"extra": extra})
        if not wanted or name in mine or name in left_out or THERE.match(name):
            continue
        here = distribution(name)
        found[name] = here.version
        extras = ("", *requirement.extras)
        more = {(each, extra) for each in here.requires or [] for extra in extras} - seen
        seen |= more
        waiting += more
    return dict(sorted(found.items()))


def main() -> None:
    """Fill the folder."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--has", type=Path, help="file of what the machine has")
    parser.add_argument("--list", action="store_true", help="name what would be fetched, and end")
    options = parser.parse_args()
    wanted = needed(options.has.read_text(encoding="utf-8").splitlines() if options.has else ())
    lines = [f"{name}=={version}" for name, version in wanted.items()]
    if options.list:
        print("\n".join(lines))
        return
    plugins = [str(path.parent) for path in ROOT.glob("plugins/*/pyproject.toml")]
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    build = [*pip, "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir"]
    subprocess.run([*build, str(options.folder), str(ROOT), *plugins], check=True)
    fetch = [*pip, "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest"]
    subprocess.run([*fetch, str(options.folder), *lines], check=True)
    print(f"{len(list(options.folder.glob('*.whl')))} wheels in {options.folder}")


if __name__ == "__main__":
    main()
