"""Public files of suites: tables of where they are, downloads that are checked and converted."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import tarfile
import tomllib
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from cse_core import __version__
from cse_core.errors import CseError
from cse_core.loading import load_factory

LOCK = "fetched.json"
"""What was fetched into a folder, from where, with which checksums."""
_SECONDS = 20
_MAX_BYTES = 2**29
"""Bytes of a download, and of what it unpacks to, at most."""
_WEB_PAGE = re.compile(rb"(\xef\xbb\xbf)?\s*<(!doctype\s+html|html|head)\b", re.IGNORECASE)
_RANGE = re.compile(r"\{(\d+)\.\.(\d+)\}")


class Unreachable(CseError):
    """A place that does not answer."""


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Place(_Table):
    """Somewhere on the web that holds a file.

    Attributes:
        urls: Files or archives; ``{00..63}`` in one is a number of that many digits.
        revision: What never changes of it, such as a commit; empty where the host has none.
        sha256: Checksums that were published, in the order of ``urls``.
        md5: The same where only MD5 was.
        members: Names of the files of an archive that are unpacked; without any, all.
    """

    urls: tuple[str, ...] = Field(min_length=1)
    revision: str = ""
    sha256: tuple[str, ...] = ()
    md5: tuple[str, ...] = ()
    members: tuple[str, ...] = ()

    @field_validator("urls")
    @classmethod
    def _expanded(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        links: list[str] = []
        for url in urls:
            if urlsplit(url).scheme not in ("http", "https"):
                raise ValueError(f"not a web address: {url}")
            numbers = _RANGE.search(url)
            if numbers is None:
                links.append(url)
                continue
            first, last = numbers.groups()
            for number in range(int(first), int(last) + 1):
                links.append(_RANGE.sub(str(number).zfill(len(first)), url, count=1))
        return tuple(links)

    @property
    def pin(self) -> str:
        """Describe what pins the content."""
        revision = f"revision {self.revision}" if self.revision else "first fetch"
        return "published checksum" if self.sha256 or self.md5 else revision


class Owner(_Table):
    """Who keeps files, and under which licence."""

    name: str
    licence: str


class SourceFile(_Table):
    """A file of a suite.

    Attributes:
        name: Its name in the folder, or its path: ``.tsv.gz`` with ``columns``, or ``.jsonl.gz``.
        owner: Key of ``owners``.
        reader: ``"package.module:function"``, called with the content of the fetched files by name
            and ``options``; it yields rows.
        rows: How many rows it has; None where nobody has published it.
        measured: SHA-256 of its text in the copy that published results were measured on; a fetched
            one may have another, which is said.
        places: Where it is, the first that answers is taken.
    """

    name: str = Field(pattern=r"^([\w-]+/){0,2}[\w.-]+\.(tsv|jsonl)\.gz$")
    owner: str
    reader: str
    columns: tuple[str, ...] = ()
    options: dict[str, Any] = {}
    rows: int | None = None
    measured: str = ""
    places: tuple[Place, ...] = Field(min_length=1)

    @property
    def set_name(self) -> str:
        """The folder that it is in, or its name without its ending."""
        folder, slash, _ = self.name.partition("/")
        return folder if slash else re.sub(r"\.(tsv|jsonl)\.gz$", "", self.name)


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
    """Read a table of sources, in which a mistake is one of the plugin that brings it."""
    try:
        read = Sources.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, tomllib.TOMLDecodeError, ValidationError) as error:
        outcome = " ".join(str(error).split())
        raise CseError(f"not a table of sources: {outcome[:300]}", where=path.name) from None
    for file in read.files:
        if file.owner not in read.owners:
            raise CseError(f"{file.name}: unknown owner {file.owner}", where=path.name)
    return read


@dataclass
class Web:
    """Downloads, each once.

    Attributes:
        mirror: A folder with the downloads by their names, or an address that stands for every
            host, asked for ``HOST/PATH``; None takes the hosts themselves.
        tell: Gets a line for each download.
    """

    mirror: str | None = None
    tell: Callable[[str], None] = lambda line: None
    _known: dict[str, bytes] = field(default_factory=dict)
    _dead: dict[str, str] = field(default_factory=dict)

    def get(self, url: str) -> bytes:
        """Download the content of an address.

        Raises:
            Unreachable: If it is not there, or its host does not answer.
        """
        if url not in self._known:
            self._known[url] = self._read(url)
        return self._known[url]

    def _read(self, url: str) -> bytes:
        parts, place = urlsplit(url), url
        if self.mirror is not None and "://" in self.mirror:
            place = f"{self.mirror.rstrip('/')}/{parts.netloc}{parts.path}"
        elif self.mirror is not None:
            path = Path(self.mirror).expanduser() / Path(parts.path).name
            if not path.is_file():
                raise Unreachable(f"{path.name} is not in {path.parent}", where=url)
            return path.read_bytes()
        host = urlsplit(place).netloc
        if host in self._dead:
            raise Unreachable(f"{host} does not answer: {self._dead[host]}", where=url)
        self.tell(f"fetching {place}")
        request = Request(place, headers={"User-Agent": f"cse-toolkit/{__version__}"})
        try:
            with urlopen(request, timeout=_SECONDS) as answer:
                content: bytes = answer.read(_MAX_BYTES + 1)
        except (URLError, OSError, ValueError) as error:
            why = " ".join(str(getattr(error, "reason", None) or error).split())
            if getattr(error, "code", None) is None:
                self._dead[host] = why
            raise Unreachable(f"{host or place} does not answer: {why}", where=url) from None
        if len(content) > _MAX_BYTES:
            raise CseError(f"more than {_MAX_BYTES:,} bytes", where=url)
        return content


def fetch_file(
    file: SourceFile, web: Web, known: dict[str, Any] | None
) -> tuple[bytes, dict[str, Any]]:
    """Download a file and convert it to what the suites read.

    ``known`` is what the lock file has of it, None where it was never fetched.

    Returns:
        Its content, gzipped, and what the lock file keeps of it.

    Raises:
        Unreachable: If no place answers.
        CseError: If a download is not what was published, or not what was fetched the first time.
    """
    why: list[str] = []
    for place in file.places:
        try:
            raw, sums = _download(place, web)
        except Unreachable as error:
            why.append(error.what)
            continue
        for url, digest in sums.items():
            if known is not None and known["downloads"].get(url, digest) != digest:
                raise _changed(file.name, f"{url} is not what it was when it was fetched first")
        rows, text = _converted(file, raw)
        checksum = hashlib.sha256(text).hexdigest()
        if known is not None and known["sha256"] != checksum:
            raise _changed(file.name, "its rows are not those that were fetched before")
        record = {"sha256": checksum, "rows": rows, "revision": place.revision, "pin": place.pin}
        return gzip.compress(text, 6, mtime=0), {**record, "downloads": sums}
    raise Unreachable("; ".join(dict.fromkeys(why)), where=file.name)


def content_sum(path: Path) -> str:
    """Return the SHA-256 of what a gzip file unpacks to, empty where it is damaged."""
    try:
        with gzip.open(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, EOFError):
        return ""


def _download(place: Place, web: Web) -> tuple[dict[str, bytes], dict[str, str]]:
    """Return the files of a place by name, and the checksum of each download."""
    raw: dict[str, bytes] = {}
    sums: dict[str, str] = {}
    for number, url in enumerate(place.urls):
        content = web.get(url)
        if _WEB_PAGE.match(content):  # of a login, or an error that its host calls a success
            raise Unreachable(f"{urlsplit(url).netloc} sends a web page in its place", where=url)
        sums[url] = hashlib.sha256(content).hexdigest()
        for name, published in (("sha256", place.sha256), ("md5", place.md5)):
            digest = hashlib.new(name, content, usedforsecurity=False).hexdigest()
            if published and published[number] != digest:
                hint = "fetch it again; where that does not help, its host serves something else"
                what = "is not the file whose checksum was published"
                raise CseError(what, where=url, value=f"{name} {digest}", hint=hint)
        raw.update(_unpacked(url, content, place.members))
    return raw, sums


def _unpacked(
    url: str, content: bytes, members: tuple[str, ...] = ()
) -> Iterator[tuple[str, bytes]]:
    """Yield the files of an archive, those with some names, or the one that it is."""

    def wanted(path: str) -> bool:
        return not members or path.rpartition("/")[2] in members

    name = urlsplit(url).path.rpartition("/")[2]
    try:
        if name.endswith(".zip"):
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                items = [item for item in archive.infolist() if wanted(item.filename)]
                _check_size(url, sum(item.file_size for item in items))
                for item in items:
                    if not item.is_dir():
                        yield item.filename, archive.read(item)
        elif name.endswith((".tar.gz", ".tgz", ".tar")):
            with tarfile.open(fileobj=io.BytesIO(content)) as packed:
                total = 0
                for member in packed:
                    if not wanted(member.name):
                        continue
                    total += member.size
                    _check_size(url, total)
                    if member.isfile() and (file := packed.extractfile(member)) is not None:
                        yield member.name, file.read()
        else:
            yield name, content
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, OSError) as error:
        hint = "fetch it again"
        raise CseError(f"the archive is damaged: {error}", where=url, hint=hint) from None


def _check_size(url: str, size: int) -> None:
    if size > _MAX_BYTES:
        raise CseError(f"unpacks to more than {_MAX_BYTES:,} bytes", where=url)


def _changed(name: str, what: str) -> CseError:
    hint = f"the file there is kept; remove {name} and its entry in {LOCK} to take what is new"
    return CseError(what, where=name, hint=hint)


def _converted(file: SourceFile, raw: dict[str, bytes]) -> tuple[int, bytes]:
    """Return the number of rows of a file, and its text."""
    reader = load_factory(file.reader, where=file.name)
    try:
        lines = list(_lines(file, reader(raw, **file.options)))
        text = ("\n".join(lines) + "\n").encode()
    except CseError:
        raise
    except (ValueError, KeyError, IndexError, StopIteration) as error:
        raise CseError(f"has an unexpected form: {error!r}", where=file.name) from None
    rows = len(lines) - bool(file.columns)
    if not rows:
        hint = "what was fetched is something else: open its address, and see what it sends"
        raise CseError("has no rows", where=file.name, hint=hint)
    if file.rows is not None and rows != file.rows:
        what = f"has {rows:,} rows, not the {file.rows:,} that it is known by"
        raise CseError(what, where=file.name, hint="its owner changed it, or it is not whole")
    return rows, text


def _lines(file: SourceFile, rows: Iterable[Any]) -> Iterator[str]:
    if file.columns:
        yield "\t".join(file.columns)
    for row in rows:
        if not file.columns:
            yield json.dumps(row, ensure_ascii=False)
        else:
            cells = (" ".join(cell.split()) if "\t" in cell or "\n" in cell else cell
                     for cell in row)  # fmt: skip
            yield "\t".join(cells)
