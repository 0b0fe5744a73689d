"""Write docs/directory.md: the plugins that are on a package index, found by their names.

    python docs/directory.py                     asks the index that pip asks by default
    python docs/directory.py --index URL --out FILE

A plugin is a project ``cse-*`` whose newest wheel has an entry point of group ``cse`` or
``cse.commands``; nobody has to announce it. Of a wheel the table of contents, the metadata and the
entry points are read, by range requests, and nothing of it is run.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
from collections.abc import Iterator
from configparser import ConfigParser
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urljoin
from urllib.request import Request, urlopen
from zipfile import BadZipFile, ZipFile

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from pip._internal.models.index import PyPI

PREFIX = "cse-"
GROUPS = ("cse", "cse.commands")
BLOCK = 32_768
"""Bytes of a request; the end of a wheel, with its table of contents, is rarely longer."""


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


class Remote(io.RawIOBase):
    """A file of a server, of which is fetched what is read."""

    def __init__(self, url: str) -> None:
        with urlopen(Request(url, method="HEAD")) as answer:
            self.url, self.size, self.place = url, int(answer.headers["Content-Length"]), 0

    def seekable(self) -> bool:
        """Return that any place can be read."""
        return True

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place, and return it."""
        self.place = (
            offset + {io.SEEK_SET: 0, io.SEEK_CUR: self.place, io.SEEK_END: self.size}[whence]
        )
        return self.place

    def readinto(self, buffer: Any) -> int:
        """Fetch bytes from this place on; return how many."""
        stop = min(self.place + len(buffer), self.size)
        if stop <= self.place:
            return 0
        ranges = {"Range": f"bytes={self.place}-{stop - 1}"}
        with urlopen(Request(self.url, headers=ranges)) as answer:
            found = answer.read()
            if answer.status != 206:  # a server without ranges sends all
                found = found[self.place : stop]
        buffer[: len(found)] = found
        self.place += len(found)
        return len(found)


def ask(url: str) -> Any:
    """Return what the simple API answers, as JSON (PEP 691)."""
    accept = {"Accept": "application/vnd.pypi.simple.v1+json"}
    with urlopen(Request(url, headers=accept)) as answer:
        return json.load(answer)


def projects(index: str) -> list[str]:
    """Return the names that may be plugins."""
    names = (each["name"] for each in ask(index)["projects"])
    return sorted(name for name in names if name.lower().replace("_", "-").startswith(PREFIX))


def newest_wheel(index: str, project: str) -> tuple[str, str] | None:
    """Return the address and version of a project's newest wheel, None where it has none.

    What was withdrawn is passed over; a version that is not final counts where no other is there.
    """
    found = []
    page = urljoin(index, f"{project}/")
    for file in ask(page)["files"]:
        try:
            version = parse_wheel_filename(file["filename"])[1]
        except InvalidWheelFilename:
            continue
        if not file.get("yanked"):
            found.append((not version.is_prerelease, version, urljoin(page, file["url"])))
    return (max(found)[2], str(max(found)[1])) if found else None


def read(project: str, url: str, version: str) -> Plugin | None:
    """Return what a wheel says of itself, None where it brings nothing to ``cse``."""
    with ZipFile(io.BufferedReader(Remote(url), BLOCK)) as wheel:
        files = {name.partition(".dist-info/")[2]: name for name in wheel.namelist()}
        texts = [
            wheel.read(files[name]).decode() if name in files else ""
            for name in ("entry_points.txt", "METADATA")
        ]
    points = ConfigParser(delimiters=("=",), interpolation=None)
    points.optionxform = str  # type: ignore[assignment, method-assign]
    points.read_string(texts[0])
    plugins, commands = (
        tuple(points[group]) if points.has_section(group) else () for group in GROUPS
    )
    if not plugins and not commands:
        return None
    summary = " ".join(str(HeaderParser().parsestr(texts[1])["Summary"] or "").split())
    return Plugin(project, version, summary, plugins, tuple(c.replace(".", " ") for c in commands))


def plugins_of(index: str) -> Iterator[Plugin]:
    """Yield the plugins of an index by name; what cannot be read is said on stderr."""
    for project in projects(index):
        try:
            wheel = newest_wheel(index, project)
            found = read(project, *wheel) if wheel else None
        except (URLError, BadZipFile, KeyError, ValueError) as error:
            print(f"{project}: {type(error).__name__}: {error}", file=sys.stderr)
            continue
        if found is not None:
            yield found


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
    for each in plugins:
        summary = each.summary.replace("|", "\\|").replace("<", "&lt;")
        commands = ", ".join(f"`cse {command}`" for command in each.commands)
        lines.append(f"| `{each.name}` | {each.version} | {summary} | {commands} |")
    return "\n".join(lines) + "\n"


def main(words: list[str] | None = None) -> int:
    """Write the page; return 1, and leave it as it is, where the index cannot be asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--index", default=f"{PyPI.simple_url}/", help="address of a simple API")
    out = Path(__file__).with_name("directory.md")
    parser.add_argument("--out", type=Path, default=out, help="the page, docs/directory.md")
    given = parser.parse_args(words)
    try:
        found = list(plugins_of(given.index))
    except (URLError, KeyError, ValueError) as error:
        print(f"{given.index} cannot be asked: {error}", file=sys.stderr)
        return 1
    given.out.write_text(page_of(found), encoding="utf-8")
    print(f"{given.out}: {len(found)} plugins")
    return 0


if __name__ == "__main__":
    sys.exit(main())
