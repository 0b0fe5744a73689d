"""What a name of ``data.path`` stands for: an installed data set, a file, or a hub data set.

Data sets of the Hugging Face hub are read from its cache without a network.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from cse_core.errors import CseError, did_you_mean
from cse_core.loading import load_factory
from cse_core.records import DatasetSpec
from cse_defaults.texts.documents import PASSAGE, document_files, read_documents
from cse_defaults.texts.files import (
    TextFile,
    file_tables,
    format_of,
    is_saved,
    loadable_names,
    open_file,
    read_error,
)
from cse_defaults.texts.tables import ROWS, Reading, Unit, arrow_text, record_tables

TRAIN, DEV, TEST = ("train",), ("validation", "dev", "valid", "val"), ("test",)
"""Splits that are taken where a name says none, the first that is there."""
_FORM = "owner/name:configuration@split#revision, of which only owner/name must be there"
_NAME = re.compile(r"(\w[\w.-]*/\w[\w.-]*)(?::([\w.-]+))?(?:@([\w.-]+))?(?:#([\w./-]+))?")
_COMMIT = re.compile(r"[0-9a-f]{40}")


class HubName(NamedTuple):
    """``owner/name:configuration@split#revision``; all but the first may be empty."""

    repository: str
    configuration: str = ""
    split: str = ""
    revision: str = ""

    @staticmethod
    def parse(text: str) -> HubName | None:
        """Return the name that a text is, None where it has another form."""
        found = _NAME.fullmatch(text)
        return HubName(*found.groups("")) if found else None

    def __str__(self) -> str:
        return self[0] + "".join(m + p for m, p in zip(":@#", self[1:], strict=True) if p)

    @property
    def set_name(self) -> str:
        """Return what a set of its rows is called: ``stsbenchmark.dev``."""
        name = "-".join(filter(None, (self.repository.partition("/")[2], self.configuration)))
        return f"{name}.{'dev' if self.split in DEV else self.split}" if self.split else name


@dataclass(frozen=True)
class Source:
    """A data set of a plugin (``spec``) or of the hub, a file, or a folder of documents."""

    name: str
    spec: DatasetSpec | None = None
    file: TextFile | None = None
    folder: Path | None = None
    hub: HubName | None = None

    @property
    def synthetic(self) -> bool:
        """Tell whether its texts are made up."""
        return self.spec is not None and self.spec.synthetic

    def tables(self, unit: Unit, reading: Reading) -> Iterator[Any]:
        """Yield its rows as ``pyarrow.Table``s of strings."""
        if self.file is not None:
            return file_tables(self.file, unit, reading)
        if self.spec is not None:
            return record_tables(_rows(self.spec), unit, reading)
        if self.folder is not None:
            return record_tables(_passages(self.folder, unit, reading), unit, reading)
        assert self.hub is not None
        return reading.first(_hub_tables(self.hub, reading))


def _rows(spec: DatasetSpec) -> Iterator[tuple[str, dict[str, str]]]:
    source = load_factory(spec.factory, where=f"data set {spec.name}")()
    for number, row in enumerate(source.rows(), 1):
        yield f"{spec.name}, row {number}", row


def _passages(folder: Path, unit: Unit, reading: Reading) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the passages of a folder's documents, or whole documents, with title and file."""
    documents, notes = read_documents(folder, reading.name)
    count = sum(len(document.passages) for document in documents)
    reading.messages += notes
    reading.say(f"{len(documents):,} documents in {count:,} passages of about {PASSAGE} words")
    reading.articles = True
    for document in documents:
        about = {"title": document.title, "document": str(document.path.relative_to(folder))}
        whole = ("\n".join(document.passages),) if unit == "document" else document.passages
        for text in whole:
            yield str(document.path), {"text": text, **about}


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
    """
    if name in datasets:
        return Source(name, spec=datasets[name])
    if not name.strip():
        hint = f"name a file, or an installed data set ({', '.join(datasets) or 'none'})"
        raise CseError("the name is empty", where="data.path", hint=hint)
    try:
        path = Path(name).expanduser()
        there = path.exists()
        if path.is_dir() and not is_saved(path) and document_files(path)[0]:
            return Source(name, folder=path)
    except (OSError, RuntimeError) as error:
        raise read_error(name, error) from error
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


def _hub_tables(name: HubName, reading: Reading) -> Iterator[Any]:
    rows, resolved = hub_rows(name, TRAIN)
    reading.commit = resolved.revision
    for table in rows.with_format("arrow").iter(batch_size=ROWS):
        yield arrow_text(table, reading)


def hub_rows(name: HubName, splits: Sequence[str]) -> tuple[Any, HubName]:
    """Return a ``datasets.Dataset`` of the hub, and the name with its split and commit.

    ``splits`` has what is taken where the name says none. Code of the data set is never run.

    Raises:
        CseError: It cannot be had, or has no such split.
    """
    found = _from_hub(name)
    wanted = (name.split,) if name.split else (*splits, *(found if len(found) == 1 else ()))
    split = next((each for each in wanted if each in found), None)
    if split is None:
        hint = f"its splits: {', '.join(found)}; name one: {name._replace(split=next(iter(found)))}"
        raise CseError(f"has no split {wanted[0]}", where=str(name), hint=hint)
    # Its cache keeps the rows of each commit in a folder of that name.
    folders = [Path(file["filename"]).parent.name for file in found[split].cache_files]
    commit = next((folder for folder in folders if _COMMIT.fullmatch(folder)), "")
    if _COMMIT.fullmatch(name.revision) and commit not in ("", name.revision):
        hint = f"name #{commit}, or fetch it where the hub can be reached"
        raise CseError(f"only commit {commit} is in the cache", where=str(name), hint=hint)
    return found[split], name._replace(split=split, revision=commit or name.revision)


def _from_hub(name: HubName) -> dict[str, Any]:
    """Return the splits of a data set: from the hub, or its cache where that does not answer."""
    import datasets
    from huggingface_hub import constants

    from cse_defaults.transformers.hub import is_hub_reachable

    online = is_hub_reachable()
    before = datasets.config.HF_HUB_OFFLINE, constants.HF_HUB_OFFLINE
    if not online:  # its libraries then look only into their cache
        datasets.config.HF_HUB_OFFLINE = constants.HF_HUB_OFFLINE = True
    revision = {"revision": name.revision} if name.revision else {}
    try:
        return dict(datasets.load_dataset(name.repository, name.configuration or None, **revision))
    except Exception as error:  # many kinds of four libraries; all mean that it cannot be had
        text = " ".join(str(error).split())
        raise CseError(
            f"cannot load this data set from the hub: {text[:300]}",
            where=str(name),
            hint=f"check the name ({_FORM})"
            if online
            else "the hub cannot be reached: name a file or an installed data set",
        ) from error
    finally:
        datasets.config.HF_HUB_OFFLINE, constants.HF_HUB_OFFLINE = before
