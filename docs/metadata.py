"""Copy what all distributions share into every plugin's pyproject.toml; list the plugins as extras.

    python docs/metadata.py            rewrites the files below
    python docs/metadata.py --check    only names the files that differ; exit 1 if any does

The shared fields stand in the ``pyproject.toml`` at the root: change them there. A plugin's own
name, version, description, dependencies and entry points stay as they are. ``license-files`` cannot
reach above a distribution's folder, so each plugin has a copy of ``LICENSE``.

The root's extras ``methods`` (plugins with recipes), ``tools`` (the others) and ``all`` follow from
the folders in ``plugins/``, as do its workspace sources: uv wants one for every member it names.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import tomlkit
from tomlkit.items import Table

ROOT = Path(__file__).parents[1]
SHARED = ("requires-python", "license", "license-files", "authors", "keywords", "classifiers")
"""Fields of ``[project]``, in the order in which they are written behind ``readme``."""
LIGHT = {"study": "pages"}
"""Extras of plugins that the root's extras include: each is one small package."""
URLS = "urls"
"""The table ``[project.urls]``, which the root does not have while the project has no address."""


def wanted() -> Iterator[tuple[Path, str]]:
    """Yield the files that follow from the root, with the text that they should have."""
    project = tomlkit.parse(_text(ROOT / "pyproject.toml"))["project"]
    assert isinstance(project, Table)
    plugins = sorted(ROOT.glob("plugins/*/pyproject.toml"))
    yield ROOT / "pyproject.toml", _with_extras([path.parent for path in plugins])
    for path in plugins:
        yield path, _with_shared(_text(path), project)
        yield path.with_name("LICENSE"), _text(ROOT / "LICENSE")


def outdated() -> list[Path]:
    """Return the files that differ from what follows from the root."""
    return [path for path, text in wanted() if not path.exists() or _text(path) != text]


def _with_extras(plugins: Sequence[Path]) -> str:
    document = tomlkit.parse(_text(ROOT / "pyproject.toml"))
    extras: dict[str, list[str]] = {"methods": [], "tools": []}
    for folder in plugins:
        extra = f"[{LIGHT[folder.name]}]" if folder.name in LIGHT else ""
        kind = "methods" if list(folder.glob("cse_*/recipes")) else "tools"
        if folder.name != "testkit":  # what authors need is the extra testing
            extras[kind].append(f"cse-{folder.name}{extra}")
    extras["all"] = ["cse-toolkit[methods,tools,testing]"]
    optional = document["project"]["optional-dependencies"]
    for name, wanted in extras.items():
        optional[name] = tomlkit.array(json.dumps(wanted)).multiline(len(wanted) > 1)
    members = ["cse-toolkit", *(f"cse-{folder.name}" for folder in plugins)]
    sources = tomlkit.table()
    for member in members:
        sources[member] = tomlkit.value("{ workspace = true }")
    document["tool"]["uv"]["sources"] = sources
    return tomlkit.dumps(document)


def _with_shared(text: str, root: Table) -> str:
    document = tomlkit.parse(text)
    project = document["project"]
    assert isinstance(project, Table)
    kept = [(name, project[name]) for name in project if name not in {*SHARED, URLS}]
    merged = tomlkit.table()
    for name, value in kept:
        merged.add(name, value)
        if name == "readme":
            for shared in SHARED:
                merged.add(shared, root[shared])
    if URLS in root:
        merged.add(URLS, root[URLS])
    document["project"] = merged
    return tomlkit.dumps(document)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def main() -> None:
    """Write the files, or only check them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    for path, text in list(wanted()):
        if path.exists() and _text(path) == text:
            continue
        print(path.relative_to(ROOT))
        if not check:
            path.write_text(text, encoding="utf-8")
        else:
            parser.exit(1)


if __name__ == "__main__":
    main()
