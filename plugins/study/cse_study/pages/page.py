"""A page: Markdown with tables, and its pictures beside it as SVG files."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from cse_cli.api import check_out_file, plain
from cse_core.errors import CseError
from cse_core.files import atomic_write, disk_errors, writable_folder
from cse_study.pages.figures import Picture
from cse_study.results.table import Table

_HEADS = {".md": b"# ", ".tex": b"% "}
"""What a page begins with, and tables for LaTeX."""


@dataclass
class Page:
    """What stands on a page, in the order of its fields.

    ``lead`` and ``notes`` are paragraphs of Markdown.
    """

    title: str
    lead: list[str] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, *pictures: Picture | None) -> None:
        """Add pictures, where there was something to draw."""
        self.pictures += [picture for picture in pictures if picture is not None]

    def write(self, path: Path) -> None:
        """Write the page and its pictures, each whole or not at all."""
        parts = [f"# {plain(self.title)}", *self.lead]
        with disk_errors(path):
            for number, picture in enumerate(self.pictures, 1):
                file = path.with_name(f"{path.stem}-{number}.svg")
                atomic_write(file, picture.svg)
                parts += [f"![{plain(picture.alt)}]({quote(file.name)})", plain(picture.caption)]
            for table in self.tables:
                parts += [f"## {plain(table.title)}", table.markdown(), table.caption]
            text = "\n\n".join(part for part in [*parts, *self.notes] if part)
            atomic_write(path, f"{text}\n")


def check_file(path: Path, where: str) -> None:
    """Make the folder of a file, and refuse one that cannot be written before the work for it."""
    writable_folder(path.parent, where)
    check_out_file(path, where)


def check_page(path: Path, where: str, ending: str = ".md") -> None:
    """Check for matplotlib and a page's file; refuse to replace one that holds something else."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        what = f"pages need matplotlib: {error}"
        raise CseError(what, where=where, hint="pip install matplotlib") from error
    check_file(path, where)
    if path.suffix != ending:
        raise CseError(f"is not a {ending} file", where=where, value=str(path),
                       hint=f"name it *{ending}")  # fmt: skip
    if path.is_file():
        with path.open("rb") as file:
            start = file.read(len(_HEADS[ending]))
        if start not in (b"", _HEADS[ending]):
            hint = "name another file, or remove this one first"
            what = "holds something else than a page"
            raise CseError(what, where=where, value=str(path), hint=hint)
