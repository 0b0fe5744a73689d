"""What a name of ``data.path`` stands for: an installed data set, a file, or a hub data set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cse_core.data.articles import Unit
from cse_core.data.files import TextFile, format_of, loadable_names, open_file, read_error
from cse_core.data.hub import HubName, read_hub
from cse_core.data.readers import READERS
from cse_core.data.tables import Reading, record_tables
from cse_core.errors import CseError, did_you_mean
from cse_core.records import DatasetSpec
from cse_core.runtime.loading import load_factory


@dataclass(frozen=True)
class Source:
    """A data set that a plugin brings (``spec``), a file, or else a data set of the hub."""

    name: str
    spec: DatasetSpec | None = None
    file: TextFile | None = None
    hub: HubName | None = None

    @property
    def synthetic(self) -> bool:
        """Tell whether its texts are made up."""
        return self.spec is not None and self.spec.synthetic

    @property
    def on_hub(self) -> bool:
        """Tell whether it is a data set of the hub, of which a look shows nothing."""
        return self.hub is not None

    def tables(self, unit: Unit, reading: Reading) -> Iterator[Any]:
        """Yield its rows as ``pyarrow.Table``s of strings."""
        if self.file is not None:
            return READERS[self.file.format](self.file, unit, reading)
        if self.spec is not None:
            return record_tables(_rows(self.spec), unit, reading)
        assert self.hub is not None
        return read_hub(self.hub, reading)


def _rows(spec: DatasetSpec) -> Iterator[tuple[str, dict[str, str]]]:
    source = load_factory(spec.factory, where=f"data set {spec.name}")()
    for number, row in enumerate(source.rows(), 1):
        yield f"{spec.name}, row {number}", row


def hub_name(name: str) -> HubName | None:
    """Return the data set of the hub that a name stands for, None where it stands for a file."""
    found = None if format_of(name) else HubName.parse(name)
    folder = name.split("/", 1)[0]
    if found is None or folder in (".", "..") or Path(folder).is_dir() or Path(name).exists():
        return None
    return found


def find_source(name: str, datasets: Mapping[str, DatasetSpec]) -> Source:
    """Return what a name stands for; nothing is read and nothing downloaded.

    An installed data set goes before a file of its name (``./starter`` is the file), a file before
    a hub data set, which is always written ``owner/name``.

    Raises:
        CseError: There is nothing of that name, or it is a file that cannot be read.
    """
    if name in datasets:
        return Source(name, spec=datasets[name])
    if not name.strip():
        hint = f"name a file, or an installed data set ({', '.join(datasets) or 'none'})"
        raise CseError("the name is empty", where="data.path", hint=hint)
    try:
        path = Path(name).expanduser()
        there = path.exists()
    except (OSError, RuntimeError) as error:
        problem = error if isinstance(error, OSError) else OSError(str(error))
        raise read_error(name, problem) from error
    if not there and not format_of(name) and "/" in name:
        if (found := hub_name(name)) is not None:
            return Source(name, hub=found)
    elif not there and not Path(name).suffix:
        hint = did_you_mean(name, [*datasets, *loadable_names(Path())])
        if not hint.startswith("did"):
            hint = f"installed: {', '.join(datasets) or 'none'}"
        what = "is neither a file nor an installed data set"
        hint = f"{hint} (for a data set on the hub, write owner/name@split)"
        raise CseError(what, where="data.path", value=name, hint=hint)
    return Source(name, file=open_file(name, path))
