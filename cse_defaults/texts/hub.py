"""Data sets of the Hugging Face hub, read from its cache without a network."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from cse_core.errors import CseError
from cse_core.loading import is_hub_reachable
from cse_core.registry.names import unpacked
from cse_core.texts import Wanted
from cse_defaults.texts.files import Arrow
from cse_defaults.texts.plugin import ENDINGS
from cse_defaults.texts.tables import ROWS

if TYPE_CHECKING:
    import pyarrow as pa

DEV = ("validation", "dev", "valid", "val")
SPLITS = {"train": ("train",), "dev": DEV, "test": ("test",)}
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
        """Read a name, None where it has another form."""
        match = _NAME.fullmatch(text)
        return HubName(*match.groups("")) if match else None

    def __str__(self) -> str:
        return self[0] + "".join(m + p for m, p in zip(":@#", self[1:], strict=True) if p)

    @property
    def set_name(self) -> str:
        """Name of a set of its rows: ``stsbenchmark.dev``."""
        name = "-".join(filter(None, (self.repository.partition("/")[2], self.configuration)))
        return f"{name}.{'dev' if self.split in DEV else self.split}" if self.split else name


def hub_name(name: str) -> HubName | None:
    """Read the name of a data set of the hub, None where it stands for a file."""
    folder = name.split("/", 1)[0]
    is_file = unpacked(name).endswith(ENDINGS) or Path(name).exists() or Path(folder).is_dir()
    return None if is_file or folder in (".", "..") else HubName.parse(name)


class HubRows(Arrow):
    """The rows of a data set of the hub, a source."""

    def __init__(self) -> None:
        self._resolved = HubName("")

    def tables(self, name: str, wanted: Wanted) -> Iterator[pa.Table]:
        """Yield the rows of a split."""
        parsed = cast(HubName, HubName.parse(name))  # or another source reads it
        rows, self._resolved = hub_rows(parsed, SPLITS[wanted.split])
        yield from rows.with_format("arrow").iter(batch_size=ROWS)

    def title(self, name: str) -> str:
        """Name a dev set of the rows that were read."""
        return self._resolved.set_name

    def commit(self, name: str) -> str:
        """Give the commit of the rows that were read, empty where it is unknown."""
        return self._resolved.revision


def hub_rows(name: HubName, splits: Sequence[str]) -> tuple[Any, HubName]:
    """Return a ``datasets.Dataset`` of the hub, and the name with its split and commit.

    ``splits`` has what is taken where the name says none. Code of the data set is never run.

    Raises:
        CseError: It cannot be had, or has no such split.
    """
    sets = _from_hub(name)
    choices = (name.split,) if name.split else (*splits, *(sets if len(sets) == 1 else ()))
    split = next((choice for choice in choices if choice in sets), None)
    if split is None:
        hint = f"its splits: {', '.join(sets)}; name one: {name._replace(split=next(iter(sets)))}"
        raise CseError(f"has no split {choices[0]}", where=str(name), hint=hint)
    # Its cache keeps the rows of each commit in a folder of that name.
    folders = [Path(file["filename"]).parent.name for file in sets[split].cache_files]
    commit = next((folder for folder in folders if _COMMIT.fullmatch(folder)), "")
    if _COMMIT.fullmatch(name.revision) and commit not in ("", name.revision):
        hint = f"name #{commit}, or fetch it where the hub can be reached"
        raise CseError(f"only commit {commit} is in the cache", where=str(name), hint=hint)
    return sets[split], name._replace(split=split, revision=commit or name.revision)


def _from_hub(name: HubName) -> dict[str, Any]:
    """Load the splits of a data set: from the hub, or its cache where that does not answer."""
    import datasets
    from huggingface_hub import constants

    online = is_hub_reachable()
    before = datasets.config.HF_HUB_OFFLINE, constants.HF_HUB_OFFLINE
    if not online:  # its libraries then look only into their cache
        datasets.config.HF_HUB_OFFLINE = constants.HF_HUB_OFFLINE = True
    revision = {"revision": name.revision} if name.revision else {}
    try:
        return dict(datasets.load_dataset(name.repository, name.configuration or None, **revision))
    except Exception as error:  # many kinds of four libraries; all mean that it cannot be had
        what = f"cannot load this data set from the hub: {' '.join(str(error).split())[:300]}"
        hint = f"check the name ({_FORM})"
        if not online:
            hint = "the hub cannot be reached: name a file or an installed data set"
        raise CseError(what, where=str(name), hint=hint) from error
    finally:
        datasets.config.HF_HUB_OFFLINE, constants.HF_HUB_OFFLINE = before
