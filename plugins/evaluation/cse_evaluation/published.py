"""STS12-16, STS-B and SICK-R as their publishers wrote them, where they are on the disk.

SentEval keeps them so too. Which reader a set has stands in ``sources/sts.toml``, beside where
``cse data fetch sts`` gets it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from cse_core.loading import load_factory, package_path

_BELOW = ("*", "*/*", "*/*/*")
"""How deep below a data folder the files may lie: SentEval has ``downstream/STS/STS12-en-test``."""


class Layout(NamedTuple):
    """How a set is published.

    Attributes:
        files: Alternative names of each file that it consists of.
        columns: Names of the values of a row.
        reader: Reader of rows, as ``cse data fetch`` calls it.
        options: Options of the reader.
    """

    files: Sequence[Sequence[str]]
    columns: Sequence[str]
    reader: str
    options: Mapping[str, Any]


@cache
def layouts() -> dict[str, Layout]:
    """Return the layout of each set by its name, such as ``sts12.test``."""
    table = tomllib.loads(
        package_path("cse_evaluation:sources/sts.toml").read_text(encoding="utf-8")
    )
    known = {}
    for file in table["files"]:
        options = file["options"]
        if "parts" in options:
            names: list[Sequence[str]] = [
                [f"{year}.{kind}.{part}.txt" for year in ("STS", "STS2016")]
                for part in options["parts"] for kind in ("input", "gs")
            ]  # fmt: skip
        elif "benchmark" in file["reader"]:
            names = [[f"sts-{options['part']}.csv"]]
        else:
            part = {"TRIAL": "trial", "TEST": "test_annotated"}[options["part"]]
            names = [[f"SICK_{part}.txt", "SICK.txt"]]
        name = file["name"].removesuffix(".tsv.gz")
        known[name] = Layout(names, file["columns"], file["reader"], options)
    return known


def find_published(place: Path) -> dict[str, Path]:
    """Locate published sets in a folder and below it.

    Returns:
        By the name of a set its file, or the folder of its files.
    """
    inner = [sorted(place.glob(depth)) for depth in _BELOW]
    folders = [place, *(folder for part in inner for folder in part if folder.is_dir())]
    found: dict[str, Path] = {}
    for name, layout in layouts().items():
        whole = next((folder for folder in folders if _is_whole(folder, layout)), None)
        if whole is not None:
            files = (whole / file for file in layout.files[0])
            one = next(file for file in files if file.is_file())
            found[name] = whole if len(layout.files) > 1 else one
    return found


def _is_whole(folder: Path, layout: Layout) -> bool:
    return all(any((folder / name).is_file() for name in names) for names in layout.files)


def published_name(path: Path) -> str | None:
    """Return the set that a file, or a folder of files, is by its name, None if it is none."""
    for name, layout in layouts().items():
        if len(layout.files) == 1 and path.name == layout.files[0][0] and path.is_file():
            return name
        if len(layout.files) > 1 and path.is_dir() and _is_whole(path, layout):
            return name
    return None


def published_columns(name: str) -> Sequence[str]:
    """Return the columns of a published set."""
    return layouts()[name].columns


def published_rows(name: str, path: Path) -> Iterator[dict[str, str]]:
    """Yield the rows of a published set: its values by column."""
    layout = layouts()[name]
    files = [path] if path.is_file() else [
        path / file for names in layout.files for file in names if (path / file).is_file()
    ]  # fmt: skip
    reader: Callable[..., Iterator[Sequence[str]]] = load_factory(layout.reader)
    for row in reader({file.name: file.read_bytes() for file in files}, **layout.options):
        yield dict(zip(layout.columns, row, strict=True))
