"""Write docs/directory.md and plugins.json: the plugins on a package index, found by their names.

    python docs/directory.py                     asks the index that pip asks by default
    python docs/directory.py --index URL --out FILE --json FILE
    python docs/directory.py --wheels DIR --json FILE

``cse list-plugins --available`` and hints read the JSON file (``CSE_PLUGIN_INDEX``).
A plugin is a project ``cse-*`` whose newest wheel has an entry point of group ``cse`` or
``cse.commands``; nobody has to announce it. Of a wheel the table of contents, the metadata and the
entry points are read, by range requests, and nothing of it is run.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from configparser import ConfigParser
from dataclasses import asdict, dataclass
from email.parser import HeaderParser
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from packaging.version import Version
from pypi_simple import PYPI_SIMPLE_ENDPOINT, DistributionPackage, PyPISimple
from remotezip import RemoteIOError, RemoteZip
from requests import RequestException

PREFIX = "cse-"
GROUPS = ("cse", "cse.commands")


@dataclass(frozen=True)
class Plugin:
    """A project of the index that brings something to ``cse``.

    Attributes:
        summary: Of its metadata, one line.
        plugins: Names of its entry points of group ``cse``.
        commands: Its commands, as they are typed.
    """

    name: str
    version: str
    summary: str
    plugins: tuple[str, ...]
    commands: tuple[str, ...]


def newest_wheel(files: list[DistributionPackage]) -> DistributionPackage | None:
    """Return a project's newest wheel, None where it has none.

    What was withdrawn is passed over; a version that is not final counts where no other is there.
    """

    def age(wheel: DistributionPackage) -> tuple[bool, Version]:
        version = Version(str(wheel.version))
        return not version.is_prerelease, version

    wheels = [file for file in files if file.package_type == "wheel" and not file.is_yanked]
    return max(wheels, key=age, default=None)


def read(project: str, version: str, wheel: ZipFile) -> Plugin | None:
    """Read the metadata of a wheel, None where it brings nothing to ``cse``."""
    with wheel as archive:
        files = {name.partition(".dist-info/")[2]: name for name in archive.namelist()}
        if "entry_points.txt" not in files:
            return None
        points = ConfigParser(delimiters=("=",), interpolation=None)
        points.optionxform = str  # type: ignore[assignment, method-assign]
        points.read_string(archive.read(files["entry_points.txt"]).decode())
        if not any(map(points.has_section, GROUPS)):
            return None
        metadata = HeaderParser().parsestr(archive.read(files["METADATA"]).decode())
    summary = " ".join(str(metadata["Summary"] or "").split())
    own, commands = (points[group] if points.has_section(group) else () for group in GROUPS)
    names = tuple(command.replace(".", " ") for command in commands)
    return Plugin(project, version, summary, tuple(own), names)


def plugins_of(index: PyPISimple) -> Iterator[Plugin]:
    """Yield the plugins of an index by name; what cannot be read is said on stderr."""
    for project in sorted(index.get_index_page().projects):
        if not project.lower().replace("_", "-").startswith(PREFIX):
            continue
        try:
            wheel = newest_wheel(index.get_project_page(project).packages)
            plugin = None
            if wheel is not None:
                plugin = read(project, str(wheel.version), RemoteZip(wheel.url))
        except (RequestException, RemoteIOError, BadZipFile, KeyError, ValueError) as error:
            print(f"{project}: {type(error).__name__}: {error}", file=sys.stderr)
            continue
        if plugin is not None:
            yield plugin


def plugins_in(folder: Path) -> Iterator[Plugin]:
    """Yield the plugins among the wheels of a folder by name."""
    for path in sorted(folder.glob("*.whl")):
        name, version, *_ = path.name.split("-")
        plugin = read(name.replace("_", "-").lower(), version, ZipFile(path))
        if plugin is not None:
            yield plugin


def page_of(plugins: list[Plugin]) -> str:
    """Return the page."""
    lines = [
        "# Plugins on the index",
        "",
        f"Projects named `{PREFIX}*` whose wheel has an entry point of `cse`, found by their name:",
        "nobody has reviewed them. `pip install NAME` installs one, `cse list-plugins` shows it.",
        "",
        "| project | version | what it is for | commands |",
        "| --- | --- | --- | --- |",
    ]
    for plugin in plugins:
        summary = plugin.summary.replace("|", "\\|").replace("<", "&lt;")
        commands = ", ".join(f"`cse {command}`" for command in plugin.commands)
        lines.append(f"| `{plugin.name}` | {plugin.version} | {summary} | {commands} |")
    return "\n".join(lines) + "\n"


def main(words: list[str] | None = None) -> int:
    """Write the page; return 1, and leave it as it is, where the index cannot be asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--index", default=PYPI_SIMPLE_ENDPOINT, help="address of a simple API")
    out = Path(__file__).with_name("directory.md")
    parser.add_argument("--wheels", type=Path, help="a folder of wheels instead of an index")
    parser.add_argument("--out", type=Path, default=out, help="the page, docs/directory.md")
    parser.add_argument("--json", type=Path, help="the index that cse reads, none by default")
    given = parser.parse_args(words)
    try:
        if given.wheels is not None:
            plugins = list(plugins_in(given.wheels))
        else:
            with PyPISimple(given.index) as index:
                plugins = list(plugins_of(index))
    except (RequestException, ValueError) as error:
        print(f"{given.index} cannot be asked: {error}", file=sys.stderr)
        return 1
    given.out.write_text(page_of(plugins), encoding="utf-8")
    if given.json is not None:
        text = json.dumps({"plugins": [asdict(plugin) for plugin in plugins]}, indent=1)
        given.json.write_text(text + "\n", encoding="utf-8")
    print(f"{given.out}: {len(plugins)} plugins")
    return 0


if __name__ == "__main__":
    sys.exit(main())
