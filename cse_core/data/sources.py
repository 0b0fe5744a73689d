"""What a name of ``data.path`` stands for: an installed data set, a file, or a hub data set."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cse_core.data.articles import Unit
from cse_core.data.files import TextFile, format_of, loadable_names, open_file, read_error
from cse_core.data.readers import read_file
from cse_core.data.tables import Reading, record_tables
from cse_core.errors import CseError, did_you_mean
from cse_core.records import DatasetSpec
from cse_core.runtime.loading import load_factory

_HUB_NAME = re.compile(r"[\w][\w.-]*/[\w][\w.-]*(:[\w.-]+)?")


@dataclass(frozen=True)
class FileSource:
    """A file."""

    file: TextFile
    synthetic = False

    @property
    def name(self) -> str:
        """Return the path as it was given."""
        return self.file.name

    def tables(self, unit: Unit, reading: Reading) -> Iterator[Any]:
        """Yield its rows as ``pyarrow.Table``s of strings."""
        return read_file(self.file, unit, reading)

    def columns(self, unit: Unit, reading: Reading) -> tuple[str, ...] | None:
        """Return the columns at its beginning."""
        first = next(read_file(self.file, unit, reading), None)
        return tuple(first.column_names) if first is not None else ()


@dataclass(frozen=True)
class InstalledSource:
    """A data set that a plugin brings."""

    spec: DatasetSpec

    @property
    def name(self) -> str:
        """Return the data set's name."""
        return self.spec.name

    @property
    def synthetic(self) -> bool:
        """Tell whether its texts are made up."""
        return self.spec.synthetic

    def rows(self) -> Iterator[tuple[str, dict[str, str]]]:
        """Yield each row with its place."""
        source = load_factory(self.spec.factory, where=f"data set {self.name}")()
        for number, row in enumerate(source.rows(), 1):
            yield f"{self.name}, row {number}", row

    def tables(self, unit: Unit, reading: Reading) -> Iterator[Any]:
        """Yield its rows as ``pyarrow.Table``s of strings."""
        return record_tables(self.rows(), unit, reading)

    def columns(self, unit: Unit, reading: Reading) -> tuple[str, ...] | None:
        """Return the columns of its first row."""
        return next((tuple(row) for _, row in self.rows()), ())


@dataclass(frozen=True)
class HubSource:
    """A data set of the Hugging Face hub."""

    name: str
    synthetic = False

    def tables(self, unit: Unit, reading: Reading) -> Iterator[Any]:
        """Yield its rows as ``pyarrow.Table``s of strings."""
        from cse_core.data.hub import read_hub

        return read_hub(self.name, reading)

    def columns(self, unit: Unit, reading: Reading) -> tuple[str, ...] | None:
        """Return None: they are not known before it is loaded."""
        return None


Source = FileSource | InstalledSource | HubSource


def find_source(name: str, datasets: Mapping[str, DatasetSpec]) -> Source:
    """Return what a name stands for; nothing is read and nothing downloaded.

    An installed data set goes before a file of its name (``./starter`` is the file), a file before
    a hub data set, which is always written ``owner/name``.

    Args:
        name: One name of ``data.path``.
        datasets: The installed data sets.

    Raises:
        CseError: There is nothing of that name, or it is a file that cannot be read.
    """
    if name in datasets:
        return InstalledSource(datasets[name])
    if not name.strip():
        raise CseError(
            "an empty name",
            where="data.path",
            hint=f"name a file, or an installed data set ({', '.join(datasets) or 'none'})",
        )
    try:
        path = Path(name).expanduser()
        there = path.exists()
    except (OSError, RuntimeError) as error:
        problem = error if isinstance(error, OSError) else OSError(str(error))
        raise read_error(name, problem) from error
    folder = name.split("/", 1)[0]
    if not there and not format_of(name) and "/" in name:
        if _HUB_NAME.fullmatch(name) and folder not in (".", "..") and not Path(folder).is_dir():
            return HubSource(name)
    elif not there and not Path(name).suffix:
        hint = did_you_mean(name, [*datasets, *loadable_names(Path())])
        if not hint.startswith("did"):
            hint = f"installed: {', '.join(datasets) or 'none'}"
        raise CseError(
            "no installed data set and no file has this name",
            where="data.path",
            value=name,
            hint=f"{hint} (a data set of the hub is written owner/name)",
        )
    return FileSource(open_file(name, path))
