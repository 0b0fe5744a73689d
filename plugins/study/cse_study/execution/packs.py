"""Runs packed into a file: what they say without their models, and which study they belong to."""

from __future__ import annotations

import errno
import gzip
import json
import lzma
import math
import re
import tomllib
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field, StringConstraints

from cse_cli.api import EVALUATION_SHAPE, RESULT_SHAPE, check_shape
from cse_core.errors import CseError
from cse_core.files import METRICS, RESULT, RUN_FILE, atomic_file, atomic_write, disk_errors
from cse_study.execution.folder import ITEMS, StudyFolder, parsed, read_table, write_json

_MAX_BYTES = 2**28
"""Bytes that a file of packed runs unpacks to at most; a run takes a few thousand."""
_KEY = re.compile(r"[0-9a-f]{16}")
_LEFT_OUT = frozenset({"machine", "model", "file", "folder", "words", "subsets"})
"""What says where something lay, and parts of scores that no table shows."""
_Key = Annotated[str, StringConstraints(pattern=f"^{_KEY.pattern}$")]
_SCORED = re.compile(rf"{_KEY.pattern}(\.dev)?")
"""The key of how a run is scored, or its dev pairs."""
_Scored = Annotated[str, StringConstraints(pattern=f"^{_SCORED.pattern}$")]
_XZ = b"\xfd7zXZ\x00"
"""What a file of xz begins with."""
HINT = "cse study NAME --pack FILE writes such a file"


def _numbers_of(text: str) -> str:
    """Return a table of items, of which every column but the names is of finite numbers."""
    head, *rows = (line.split("\t") for line in text.removesuffix("\n").split("\n"))
    numbers = [name not in ("set", "item") for name in head]
    right = "set" in head and all(len(row) == len(head) for row in rows)
    if not right or not all(
        math.isfinite(float(value or 0)) for row in rows for value in compress(row, numbers)
    ):
        raise ValueError("expected a table of numbers")
    return text


def _printable(text: str) -> str:
    """Return a text that is shown as it is."""
    if not text.isprintable():
        raise ValueError("expected a text without control characters")
    return text


def _inside(name: str) -> str:
    """Return the name of a file below some folder; one that leads out of it is refused."""
    if any(part in ("", ".", "..") for part in name.split("/")):
        raise ValueError("expected the name of a file below a folder")
    return name


_Line = Annotated[str, AfterValidator(_printable)]
_Text = Annotated[_Line, StringConstraints(max_length=200)]
_Items = Annotated[str, AfterValidator(_numbers_of)]
_Name = Annotated[_Text, AfterValidator(_inside)]
_FACTS: dict[str, Any] = dict.fromkeys(("commit", "date", "machine", "system", "processor"), str)
_RAN = {"device": str, "precision": str, "threads": (int, type(None)),
        "processes": (int, type(None)), "data": {"fingerprint": str}}  # fmt: skip
_ABOUT = {**_FACTS, "run": _RAN, "versions": {...: str}, "evaluations": [[(int, float)]]}
_SHAPE = {"result": RESULT_SHAPE, "facts": _ABOUT,
          "scores": {...: EVALUATION_SHAPE | {"seconds": (int, float, type(None))}}}  # fmt: skip
"""What is read of the lines; anything else that they hold is kept as it is."""


class FileSum(BaseModel, frozen=True):
    """A file by its content; ``name`` has no folder but those below what was named."""

    name: _Name
    size: int = Field(ge=0)
    sha256: Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]

    def __str__(self) -> str:
        return f"{self.name} ({self.size:,} bytes, sha256 {self.sha256})"


class Source(BaseModel, frozen=True):
    """A model, texts or pairs that were named.

    Attributes:
        name: The name of its file or folder, or a name that every machine knows.
        files: Its files, those of a folder below its name; empty of a name that every machine
            knows.
        digest: Of an installed encoder.
    """

    name: _Name
    files: tuple[FileSum, ...] = ()
    digest: _Text = ""

    def same(self, other: Source) -> bool:
        """Tell whether both have the same content."""
        if self.files or other.files:
            return [file.sha256 for file in self.files] == [file.sha256 for file in other.files]
        return (self.name, self.digest) == (other.name, other.digest)


class PackedPoint(BaseModel, frozen=True):
    """The point and the seed of a run that a table shows, as its study defines them."""

    key: _Key
    seed: int
    labels: dict[_Text, _Text]
    columns: dict[_Text, Any] = {}
    settings: dict[_Text, Any] = {}

    @property
    def name(self) -> str:
        """The name of its point, as that of :class:`cse_study.definition.reading.Point`."""
        return "; ".join(f"{axis}={label}" for axis, label in self.labels.items()) or "the run"


class Head(BaseModel, frozen=True):
    """What a pack says of the study that its runs belong to: all that makes them again.

    Attributes:
        study: The study's name.
        definition: A digest of what its file says of runs.
        settings: Those of every run, roles as roles.
        seeds: The seeds that were asked for, of which trials take the first.
        trials: How many trials each of its rows was chosen among.
        models: By role; an empty one is ``@model``.
        data: Texts by role.
        sets: The files of the data folder that runs are scored on.
        scoring: The key of the scoring.
        scored_by: Its words, without folders.
        rows: The finished runs that the study's tables show.
    """

    study: _Text
    definition: _Text
    settings: dict[_Text, Any] = {}
    steps: int | None = None
    limit: int | None = None
    seeds: tuple[int, ...] = Field(min_length=1)
    trials: int = 1
    models: dict[_Text, Source] = {}
    data: dict[_Text, tuple[Source, ...]] = {}
    dev: tuple[Source, ...] = ()
    suites: tuple[_Text, ...] = ()
    pairs: tuple[Source, ...] = ()
    sets: tuple[FileSum, ...] = ()
    scoring: _Key
    scored_by: _Line = ""
    rows: tuple[PackedPoint, ...] = ()

    @property
    def sources(self) -> list[Source]:
        """Return everything that was named."""
        texts = [source for sources in self.data.values() for source in sources]
        return [*self.models.values(), *texts, *self.dev, *self.pairs]

    @property
    def files(self) -> list[FileSum]:
        """Return every file that its runs need, once."""
        named = [file for source in self.sources for file in source.files]
        return list({file.sha256: file for file in [*named, *self.sets]}.values())


class Mark(BaseModel, frozen=True):
    """What came of repeating a run, which ``cse verify --out`` adds to its line."""

    verdict: Literal["equal", "near", "other"]
    largest: float = 0.0
    date: _Text
    processor: _Text
    commit: _Text


class PackedRun(BaseModel, frozen=True):
    """A run in such a file; scores and their items by the key of their setting, and its ending."""

    key: _Key
    result: dict[str, Any]
    facts: dict[str, Any]
    scores: dict[_Scored, dict[str, Any]]
    items: dict[_Scored, dict[Literal[".tsv", ".items.tsv"], _Items]] = {}
    verified: Mark | None = None

    def seconds(self, scoring: str) -> float:
        """Return the seconds that its training and its scoring took."""
        parts = (self.result, self.scores.get(scoring, {}))
        return sum(float(part.get("seconds") or 0.0) for part in parts)


@dataclass(frozen=True)
class Pack:
    """A file that was read; one that was written before packs named their study has no head.

    ``raw`` are the lines behind the head as they are in the file.
    """

    file: Path
    head: Head | None
    runs: tuple[PackedRun, ...]
    raw: tuple[dict[str, Any], ...]

    def named(self, where: str) -> Head:
        """Return its head; refuse a pack without one, for who asks."""
        if self.head is None:
            what = "does not say which study, texts and points its rows are of"
            hint = "cse study NAME --unpack FILE --no-run takes its rows, and --pack says it"
            raise CseError(what, where=where, value=str(self.file), hint=hint)
        return self.head


def pack(folder: StudyFolder, keys: Iterable[str], file: Path, head: Head | None = None) -> int:
    """Write the finished runs among ``keys`` as packed lines of JSON; return how many.

    A line has ``key``, ``result``, ``facts``, and by the key of their setting ``scores`` and
    ``items``, the cosines, ranks and hits behind them. The first line has the head, ``study``.
    Vectors, models, test sentences and names of folders are left out.
    """
    lines = [line for key in dict.fromkeys(keys) if (line := _packed(folder, key))]
    write_pack(file, head, lines)
    return len(lines)


def write_pack(file: Path, head: Head | None, lines: Sequence[Mapping[str, Any]]) -> None:
    """Write such a file, whole or not at all: by xz, half the size of gzip, if it ends in .xz."""
    written = [json.dumps(line, ensure_ascii=False, sort_keys=True) for line in lines]
    if head is not None:  # not sorted: labels are in the order of the axes
        first = {"study": head.model_dump(exclude_defaults=True)}
        written.insert(0, json.dumps(first, ensure_ascii=False))
    text = "".join(f"{line}\n" for line in written).encode()
    made = lzma.compress(text) if file.suffix == ".xz" else gzip.compress(text, mtime=0)
    with disk_errors(file), atomic_file(file) as beside:
        beside.write_bytes(made)


def _packed(folder: StudyFolder, key: str) -> dict[str, Any] | None:
    result = read_table(folder.run(key) / RESULT)
    files = sorted(folder.scores(key, "any").parent.glob("*.json"))
    scores = {file.stem: read_table(file) for file in files if _SCORED.fullmatch(file.stem)}
    if not (result or scores):
        return None
    said = {"result": result, "facts": facts_of(folder, key), "scores": scores}
    items = {name: tables for name in scores if (tables := _items(folder, key, name))}
    return {"key": key, **_without_places(said), **({"items": items} if items else {})}


def facts_of(folder: StudyFolder, key: str) -> dict[str, Any]:
    """Return what a run ran on, with which versions, and the dev scores that chose.

    ``evaluations`` has round, step and score of each.
    """
    facts = read_table(folder.beside(key, "facts.json"))
    if (folder.run(key) / RUN_FILE).is_file():
        record = tomllib.loads((folder.run(key) / RUN_FILE).read_text(encoding="utf-8"))
        facts |= {name: record[name] for name in ("run", "versions") if name in record}
    chosen = read_table(folder.run(key) / RESULT).get("chosen_by")
    with suppress(OSError):
        lines = map(parsed, (folder.run(key) / METRICS).read_text("utf-8").splitlines())
        scored = [[line["round"], line["step"], line[chosen]] for line in lines if chosen in line]
        facts |= {"evaluations": scored} if scored else {}
    return facts


def _items(folder: StudyFolder, key: str, scoring: str) -> dict[str, str]:
    """Return the tables behind the scores of a setting by their ending, without sentences."""
    tables = {}
    for ending in ITEMS:
        with suppress(OSError):
            text = folder.scores(key, f"{scoring}{ending}").read_text("utf-8")
            columns = 3 if ending == ITEMS[0] else None  # set, gold, cosine
            lines = text.split("\n")  # a sentence may have other ends of lines in it
            tables[ending] = "\n".join("\t".join(line.split("\t")[:columns]) for line in lines)
    return tables


def _without_places(value: Any, left_out: Collection[str] = _LEFT_OUT) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {  # a test set may have any name
        name: _without_places(item, () if name == "results" else _LEFT_OUT)
        for name, item in value.items() if name not in left_out
    }  # fmt: skip


def unpack(folder: StudyFolder, file: Path) -> tuple[int, int]:
    """Take the runs of a file that :func:`pack` wrote; one that is there already stays as it is.

    Nothing is taken of a file with something else in it.

    Returns:
        How many were taken, and how many the file has.
    """
    packed = read_pack(file, "--unpack")
    return take(folder, packed), len(packed.runs)


def take(folder: StudyFolder, packed: Pack, keys: Collection[str] | None = None) -> int:
    """Take the runs of a pack, those with some keys, that are not there; return how many."""
    taken = 0
    with disk_errors(folder.path):
        for line in packed.runs:
            key, result = line.key, line.result
            if (keys is not None and key not in keys) or folder.trained(key) or folder.begun(key):
                continue
            files = {name: folder.scores(key, f"{name}.json") for name in line.scores}
            # Of a model that nobody trained, what is scored already stays as it is.
            new = [name for name, file_ in files.items() if result or not file_.is_file()]
            if not (result or new):
                continue
            for name in new:
                write_json(files[name], line.scores[name])
                for ending, text in line.items.get(name, {}).items():
                    atomic_write(folder.scores(key, f"{name}{ending}"), text)
            write_json(folder.beside(key, "facts.json"), line.facts)
            if result:  # last: it says that the rest is there
                write_json(folder.run(key) / RESULT, result)
            taken += 1
    return taken


def read_pack(file: Path, where: str) -> Pack:
    """Read a file of packed runs; ``where`` is the flag or argument that named it.

    Raises:
        CseError: If it cannot be read, or something else is in it.
    """
    try:
        if file.exists() and not file.is_file():
            raise OSError(errno.EINVAL, "it is not a regular file")
        with file.open("rb") as packed:
            by_xz = packed.read(len(_XZ)) == _XZ
            packed.seek(0)
            with lzma.open(packed) if by_xz else gzip.open(packed) as opened:
                content = opened.read(_MAX_BYTES + 1)
        text = content.decode()
    except OSError as error:
        what = f"cannot be read: {error.strerror or 'it is neither of gzip nor of xz'}"
        raise CseError(what, where=where, value=str(file), hint=HINT) from None
    except (EOFError, ValueError, lzma.LZMAError, zlib.error):
        raise CseError("was cut short", where=where, value=str(file), hint=HINT) from None
    if len(content) > _MAX_BYTES:
        what = f"unpacks to more than {_MAX_BYTES:,} bytes"
        raise CseError(what, where=where, value=str(file), hint="pack fewer runs to a file")
    head: Head | None = None
    lines = []
    for number, line in enumerate(text.removesuffix("\n").split("\n"), 1):
        what = "a run"
        try:
            read = json.loads(line, parse_constant=_finite, parse_float=_finite, parse_int=_whole)
            if number == 1 and isinstance(read, dict) and read.keys() == {"study"}:
                what = "the head of a pack"
                head = Head.model_validate(read["study"])
                continue
            run = PackedRun.model_validate(read)
        except (ValueError, RecursionError):
            what = f"line {number} is not {what}"
            raise CseError(what, where=where, value=str(file), hint=HINT) from None
        check_shape(read, _SHAPE, file, HINT, f"line {number}")
        lines.append((run, read))
    return Pack(file, head, tuple(run for run, _ in lines), tuple(raw for _, raw in lines))


def _whole(text: str) -> int:
    """Read an integer that floats reach too."""
    _finite(text)
    return int(text)


def _finite(text: str) -> float:
    """Read a number; NaN and infinities, which no score is, are no JSON either."""
    if not math.isfinite(value := float(text)):
        raise ValueError(text)
    return value
