"""Tables of sources: where ``cse data fetch`` takes the files of a suite from."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from cse_core.errors import CseError

_RANGE = re.compile(r"\{(\d+)\.\.(\d+)\}")


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Place(_Table):
    """Somewhere on the web that holds a file.

    Attributes:
        urls: Files or archives; ``{00..63}`` in one is a number of that many digits.
        revision: What never changes of it, such as a commit; empty where the host has none.
        sha256: Checksums that were published, in the order of ``urls``.
    """

    urls: tuple[str, ...] = Field(min_length=1)
    revision: str = ""
    sha256: tuple[str, ...] = ()

    @field_validator("urls")
    @classmethod
    def _expanded(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        found: list[str] = []
        for url in urls:
            if urlsplit(url).scheme not in ("http", "https"):
                raise ValueError(f"not a web address: {url}")
            numbers = _RANGE.search(url)
            if numbers is None:
                found.append(url)
                continue
            first, last = numbers.groups()
            for number in range(int(first), int(last) + 1):
                found.append(_RANGE.sub(str(number).zfill(len(first)), url, count=1))
        return tuple(found)


class Owner(_Table):
    """Who keeps files, and under which licence."""

    name: str
    licence: str


class SourceFile(_Table):
    """A file of a suite.

    Attributes:
        name: Its name in the folder: ``.tsv.gz`` with ``columns``, or ``.jsonl.gz``.
        owner: Key of ``owners``.
        reader: ``"package.module:function"``, called with the content of the fetched files by name
            and ``options``; it yields rows.
        rows: How many rows it has; None where nobody has published it.
        measured: SHA-256 of its text in the copy that published results were measured on; a fetched
            one may have another, which is said.
        places: Where it is, the first that answers is taken.
    """

    name: str = Field(pattern=r"^[\w.-]+\.(tsv|jsonl)\.gz$")
    owner: str
    reader: str
    columns: tuple[str, ...] = ()
    options: dict[str, Any] = {}
    rows: int | None = None
    measured: str = ""
    places: tuple[Place, ...] = Field(min_length=1)


class Sources(_Table):
    """A table of sources.

    Attributes:
        folder: Folder below the data folder in which the suite looks for them.
    """

    summary: str
    folder: str = Field(pattern=r"^\w+$")
    owners: dict[str, Owner]
    files: tuple[SourceFile, ...] = Field(min_length=1)


def read_sources(path: Path) -> Sources:
    """Read a table of sources.

    Raises:
        CseError: If it is not such a table: a mistake of the plugin that brings it.
    """
    try:
        found = Sources.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, tomllib.TOMLDecodeError, ValidationError) as error:
        outcome = " ".join(str(error).split())
        raise CseError(f"not a table of sources: {outcome[:300]}", where=path.name) from None
    for file in found.files:
        if file.owner not in found.owners:
            raise CseError(f"{file.name}: unknown owner {file.owner}", where=path.name)
    return found
