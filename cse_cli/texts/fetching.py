"""Files from the web: downloaded, checked against what was fetched first, and converted."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from cse_cli.texts.sources import Place, SourceFile
from cse_core import __version__
from cse_core.errors import CseError
from cse_core.runtime.loading import load_factory

LOCK = "fetched.json"
"""What was fetched into a folder, from where, with which checksums."""
_SECONDS = 20
_MOST = 2**29
"""Bytes of a download, and of what it unpacks to, at most."""


class Unreachable(CseError):
    """A place that does not answer."""


@dataclass
class Web:
    """Downloads, each once.

    Attributes:
        mirror: A folder or address that stands for every host: ``MIRROR/HOST/PATH``, in a folder
            also ``MIRROR/NAME``; None takes the hosts themselves.
        tell: Gets a line for each download.
    """

    mirror: str | None = None
    tell: Callable[[str], None] = lambda line: None
    _known: dict[str, bytes] = field(default_factory=dict)
    _dead: dict[str, str] = field(default_factory=dict)

    def get(self, url: str) -> bytes:
        """Return what is at an address.

        Raises:
            Unreachable: If it is not there, or its host does not answer.
        """
        if url not in self._known:
            self._known[url] = self._read(url)
        return self._known[url]

    def _read(self, url: str) -> bytes:
        parts = urlsplit(url)
        if self.mirror is not None and "://" not in self.mirror:
            return self._from_folder(Path(self.mirror).expanduser(), url)
        place = url
        if self.mirror is not None:
            place = f"{self.mirror.rstrip('/')}/{parts.netloc}{parts.path}"
        host = urlsplit(place).netloc
        if host in self._dead:
            raise Unreachable(f"{host} does not answer: {self._dead[host]}", where=url)
        self.tell(f"fetching {place}")
        request = Request(place, headers={"User-Agent": f"cse-toolkit/{__version__}"})
        try:
            with urlopen(request, timeout=_SECONDS) as answer:
                content: bytes = answer.read(_MOST + 1)
        except (URLError, OSError, ValueError) as error:
            why = " ".join(str(getattr(error, "reason", None) or error).split())
            if getattr(error, "code", None) is None:
                self._dead[host] = why
            raise Unreachable(f"{host or place} does not answer: {why}", where=url) from None
        if len(content) > _MOST:
            raise CseError(f"more than {_MOST:,} bytes", where=url)
        return content

    def _from_folder(self, folder: Path, url: str) -> bytes:
        parts = urlsplit(url)
        below = folder / parts.netloc / parts.path.lstrip("/")
        for path in (below, folder / below.name):
            if path.is_file():
                return path.read_bytes()
        raise Unreachable(f"{below.name} is not in {folder}", where=url)


@dataclass(frozen=True)
class Fetched:
    """A file that was fetched: its bytes, and what the lock file keeps of it."""

    content: bytes
    record: dict[str, Any]


def fetch_file(file: SourceFile, web: Web, known: dict[str, Any] | None) -> Fetched:
    """Download a file and convert it to what the suites read.

    Args:
        file: Its entry in the table of sources.
        web: What downloads it.
        known: What the lock file has of it, None where it was never fetched.

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
        for url, found in sums.items():
            _check(file, url, found, (known or {}).get("downloads", {}).get(url))
        rows, text = _converted(file, raw)
        content = gzip.compress(text, mtime=0)
        record = {
            "sha256": hashlib.sha256(text).hexdigest(),
            "rows": rows,
            "revision": place.revision,
            "published": bool(place.sha256),
            "downloads": sums,
        }
        if known is not None and known["sha256"] != record["sha256"]:
            raise _changed(file.name, "its rows are not those that were fetched before")
        return Fetched(content, record)
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
        sums[url] = hashlib.sha256(content).hexdigest()
        if place.sha256 and place.sha256[number] != sums[url]:
            hint = "fetch it again; where that does not help, its host serves something else"
            raise CseError("is not the file whose checksum was published", where=url, hint=hint)
        raw.update(_unpacked(url, content))
    return raw, sums


def _unpacked(url: str, content: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the files of an archive, or the one that it is."""
    name = urlsplit(url).path.rpartition("/")[2]
    try:
        if name.endswith(".zip"):
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                _check_size(url, sum(each.file_size for each in archive.infolist()))
                for each in archive.infolist():
                    if not each.is_dir():
                        yield each.filename, archive.read(each)
        elif name.endswith((".tar.gz", ".tgz", ".tar")):
            with tarfile.open(fileobj=io.BytesIO(content)) as archive:
                total = 0
                for member in archive:
                    total += member.size
                    _check_size(url, total)
                    if member.isfile() and (held := archive.extractfile(member)) is not None:
                        yield member.name, held.read()
        else:
            yield name, content
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, OSError) as error:
        hint = "fetch it again"
        raise CseError(f"the archive is damaged: {error}", where=url, hint=hint) from None


def _check_size(url: str, size: int) -> None:
    if size > _MOST:
        raise CseError(f"unpacks to more than {_MOST:,} bytes", where=url)


def _check(file: SourceFile, url: str, found: str, known: str | None) -> None:
    if known is not None and known != found:
        raise _changed(file.name, f"{url} is not what it was when it was fetched first")


def _changed(name: str, what: str) -> CseError:
    hint = f"the file there is kept; remove {name} and its entry in {LOCK} to take what is new"
    return CseError(what, where=name, hint=hint)


def _converted(file: SourceFile, raw: dict[str, bytes]) -> tuple[int, bytes]:
    """Return how many rows a file has, and its text."""
    reader = load_factory(file.reader, where=file.name)
    try:
        lines = list(_lines(file, reader(raw, **file.options)))
    except CseError:
        raise
    except (ValueError, KeyError, IndexError, StopIteration) as error:
        raise CseError(f"has an unexpected form: {error!r}", where=file.name) from None
    rows = len(lines) - bool(file.columns)
    if file.rows is not None and rows != file.rows:
        what = f"has {rows:,} rows, not the {file.rows:,} that it is known by"
        raise CseError(what, where=file.name, hint="its owner changed it, or it is not whole")
    return rows, ("\n".join(lines) + "\n").encode()


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
