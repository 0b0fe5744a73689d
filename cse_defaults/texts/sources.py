"""What a name of ``data.path`` stands for, and its rows as Arrow tables of text.

Tables of a large file lie in a file that is mapped into memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from cse_core.errors import CseError, did_you_mean
from cse_core.files import cache_folder, read_error
from cse_core.loading import load_factory
from cse_core.records import SourceSpec
from cse_core.registry.names import Place, ending_of, source_of
from cse_core.registry.registry import Registered, Registry
from cse_core.texts import Seen, Wanted
from cse_defaults.texts.plugin import cse_sources
from cse_defaults.texts.tables import LARGE, arrow_text, mapped, record_tables, trimmed

if TYPE_CHECKING:
    import pyarrow as pa


@cache
def default_registry() -> Registry:
    """The sources of the toolkit alone."""
    toolkit = ("cse-toolkit", "", "cse-toolkit:texts")
    return Registry(Registered(spec, *toolkit) for spec in cse_sources())


class TextSource:
    """A source and the name that it is to read.

    Attributes:
        name: What the user wrote, for messages.
        place: The record, and the name without options.
        reader: The source itself.
        seen: What was noticed in reading it.
    """

    def __init__(self, name: str, place: Place) -> None:
        self.name, self.place = name, place
        self._open()

    def _open(self) -> None:
        spec = self.place.spec
        noun = "data set" if spec.is_dataset else "source"
        self.reader = load_factory(spec.factory, where=f"{noun} {spec.name}")()
        self.seen = getattr(self.reader, "seen", None) or Seen()

    @property
    def commit(self) -> str:
        """The version of the rows that were read, empty where it is unknown."""
        commit = getattr(self.reader, "commit", None)
        return "" if commit is None else commit(self.place.name)

    def tables(self, wanted: Wanted) -> list[pa.Table]:
        """Return its rows as tables of texts or lists of texts, those of a large file mapped.

        Where they cannot be written, a message says so.
        """
        path, folder = Path(self.place.name).expanduser(), cache_folder()
        if folder is not None and path.is_file() and path.stat().st_size >= LARGE:
            try:
                return mapped(self.read(wanted), folder)
            except OSError as error:
                self._open()  # what it has seen is seen again
                why = f"its texts are held in memory, not in {folder}: {error.strerror or error}"
                self.seen.messages.append(why)
        return list(self.read(wanted))

    def read(self, wanted: Wanted) -> Iterator[pa.Table]:
        """Yield its rows as tables of trimmed texts."""
        name, reader, rows = self.place.name, self.reader, 0
        texts: Iterator[pa.Table]
        if tables := getattr(reader, "tables", None):
            texts = (arrow_text(table, self.seen, wanted.titles) for table in tables(name, wanted))
        else:
            texts = record_tables(reader.rows(name, wanted), wanted, self.seen)
        for table in texts:
            yield trimmed(table.slice(0, wanted.limit and wanted.limit - rows), self.name, rows)
            rows += len(table)
            if wanted.limit and rows >= wanted.limit:
                return


def find_source(
    name: str, registry: Registry | None = None, where: str | None = "data.path"
) -> TextSource:
    """Find what a name stands for; nothing is read and nothing downloaded.

    An installed data set goes before a file of its name (``./starter`` is the file), a file before
    a hub data set, which is always written ``owner/name``. Without a registry the sources are
    those of the toolkit. ``where`` takes names of data sets; None takes those of files alone.

    Raises:
        CseError: If it stands for nothing, or its file is missing.
    """
    registry = default_registry() if registry is None else registry
    installed = ", ".join(registry.datasets()) or "none"
    if not name.strip():
        hint = f"name a file{f', or an installed data set ({installed})' if where else ''}"
        raise CseError("the name is empty", where=where, hint=hint)
    try:
        place = source_of(name, registry)
        if place is not None:
            source = TextSource(name, place)
            is_set = place.spec.is_dataset or hasattr(source.reader, "title")
            if is_set and where is None:
                place = None
            else:
                path = Path(place.name).expanduser()
                if not place.spec.endings or path.is_file() or path.is_dir():
                    return source
        path = Path(name if place is None else place.name).expanduser()
        if where and place is None and not (path.suffix or "/" in name or path.exists()):
            hint = did_you_mean(name, [*registry.datasets(), *loadable_names(Path(), registry)])
            if not hint.startswith("did"):
                hint = f"installed: {installed}"
            what = "is neither a file nor an installed data set"
            hint = f"{hint} (for a data set on the hub, write owner/name@split)"
            raise CseError(what, where=where, value=name, hint=hint)
        raise _no_file(name, path, registry)
    except (OSError, RuntimeError) as error:
        raise read_error(name, error) from error


def loadable_names(folder: Path, registry: Registry) -> list[str]:
    """List the files of a folder that have a known ending."""
    try:
        return sorted(entry.name for entry in folder.iterdir() if ending_of(entry.name, registry))
    except OSError:
        return []


def _no_file(name: str, path: Path, registry: Registry) -> CseError:
    """Describe why a path has no text."""
    if path.is_dir():
        names = ", ".join(loadable_names(path, registry)[:6])
        kinds = Counter(file.suffix.lower() or "without an ending" for file in path.iterdir())
        others = ", ".join(f"{count:,} {ending}" for ending, count in kinds.most_common(5))
        hint = f"no file in it can be read ({others or 'it is empty'})"
        hint = f"name a file in it: {names}" if names else hint
        return CseError("is a folder, not a file", where=name, hint=hint)
    if path.is_file():
        sources = registry.all(SourceSpec)
        endings = {ending for source in sources for ending in source.spec.endings}
        hint = f"these are read: {', '.join(sorted(endings))}, each also with .gz or .zst; "
        hint += "convert it to one of them"
        return CseError("unknown file type", where=name, value=path.suffix, hint=hint)
    if path.exists():
        what = "is a pipe, socket or device, not a file"
        return CseError(what, where=name, hint="write its texts to a file first")
    hint = f"folder {path.parent} does not exist"
    if path.parent.is_dir():
        near = did_you_mean(path.name, loadable_names(path.parent, registry))
        hint = f"in folder {path.parent}: {near}"
    return CseError("no such file", where=name, hint=hint)
