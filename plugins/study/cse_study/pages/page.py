"""A page: sections of notes, tables and pictures in one HTML file that needs nothing else."""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from urllib.parse import quote

from cse_cli.api import check_out_file, plain
from cse_core import __version__
from cse_core.errors import CseError
from cse_core.files import atomic_write, disk_errors, writable_folder
from cse_study.pages.figures import Picture
from cse_study.results.table import Table

_NUMBER = re.compile(r"[-+−]?[\d,]+(\.\d+)?(e[-+]?\d+)?( ± [\d.,e-]+)?( \(n = \d+\))?%?")


@dataclass
class Section:
    """A part of a page."""

    title: str
    notes: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)

    def add(self, *pictures: Picture | None) -> None:
        """Add pictures, where there was something to draw."""
        self.pictures += [picture for picture in pictures if picture is not None]


@dataclass
class Page:
    """What stands on a page."""

    title: str
    lead: list[str] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)

    def html(self) -> str:
        """Return the page; :func:`check_page` says whether what makes it is installed."""
        from jinja2 import Environment
        from markupsafe import Markup, escape

        environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
        environment.tests["number_like"] = lambda text: bool(_NUMBER.fullmatch(str(text)))
        environment.filters["bold"] = lambda text: Markup(
            re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", str(escape(text)))
        )
        environment.filters["base64"] = lambda text: b64encode(text.encode()).decode()
        source = files("cse_study.pages").joinpath("templates/page.html")
        template = environment.from_string(source.read_text(encoding="utf-8"))
        sections = [each for each in self.sections if each.notes or each.tables or each.pictures]
        made = f"Made by cse {__version__} on {datetime.now(UTC):%Y-%m-%d %H:%M} UTC."
        return template.render(title=self.title, lead=self.lead, sections=sections, made=made)

    def write(self, path: Path) -> None:
        """Write the page, whole or not at all: Markdown where the file ends in ``.md``, else HTML.

        Raises:
            CseError: If it cannot be written, or what makes it is not installed.
        """
        with disk_errors(path):
            atomic_write(path, self.markdown(path) if path.suffix == ".md" else self.html())

    def markdown(self, path: Path) -> str:
        """Return the page as Markdown for a file, and write its pictures beside the file."""
        parts = [f"# {plain(self.title)}", *self.lead]
        pictures = [picture for section in self.sections for picture in section.pictures]
        for number, picture in enumerate(pictures, 1):
            file = path.with_name(f"{path.stem}-{number}.svg")
            atomic_write(file, picture.svg)
            parts.append(f"![{plain(picture.title)}]({quote(file.name)})")
        for section in self.sections:
            for table in section.tables:
                title = plain(table.title or section.title)
                parts += [f"## {title}", table.markdown(), table.caption]
            parts += section.notes
        return "\n\n".join(part for part in parts if part) + "\n"


def check_file(path: Path, where: str) -> None:
    """Make the folder of a file, and refuse one that cannot be written before the work for it.

    Raises:
        CseError: If it cannot be written, or its folder can neither be made nor written to.
    """
    writable_folder(path.parent, where)
    check_out_file(path, where)


def check_page(path: Path, where: str) -> None:
    """Check the file of a page, and refuse to replace a file that holds something else.

    Raises:
        CseError: As :func:`check_file`, if it holds something else, or if jinja2 or matplotlib is
            missing.
    """
    try:
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401
    except ImportError as error:
        what, hint = f"pages need jinja2 and matplotlib: {error}", "pip install jinja2 matplotlib"
        raise CseError(what, where=where, hint=hint) from error
    check_file(path, where)
    head = b"# " if path.suffix == ".md" else b"<!doctype html>"
    with path.open("rb") if path.is_file() else BytesIO() as file:
        start = file.read(len(head)).lower()
    if start not in (b"", head):
        hint = "name another file, or remove this one first"
        raise CseError("holds something else than a page", where=where, value=str(path), hint=hint)
