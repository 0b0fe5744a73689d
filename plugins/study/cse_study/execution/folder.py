"""The folder of all studies: what lies where, which runs are there, and runs packed into a file."""

from __future__ import annotations

import errno
import fcntl
import gzip
import json
import math
import os
import re
import shutil
import time
import tomllib
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, StringConstraints

from cse_cli.api import EVALUATION_SHAPE, RESULT_SHAPE, check_shape, read_json
from cse_core.errors import CseError
from cse_core.files import METRICS, RESULT, RUN_FILE, atomic_file, atomic_write, disk_errors

_WAIT = 0.5
"""Seconds between two looks at a lock that another process holds."""
_MAX_BYTES = 2**28
"""Bytes that a file of packed runs unpacks to at most; a run takes a few thousand."""
_WARNING = "warning: "
"""What a line of a log begins with that warns."""
_KEY = re.compile(r"[0-9a-f]{16}")
ITEMS = (".tsv", ".items.tsv")
"""Endings of the files with what is behind the scores of a setting: cosines, ranks and hits."""
_LEFT_OUT = frozenset({"machine", "model", "file", "folder", "words", "subsets"})
"""What says where something lay, and parts of scores that no table shows."""
_Key = Annotated[str, StringConstraints(pattern=f"^{_KEY.pattern}$")]


def _numbers_of(text: str) -> str:
    """Return a table of items, of which every column but the names is of finite numbers."""
    head, *rows = (line.split("\t") for line in text.splitlines())
    for row in rows:
        if len(row) != len(head) or not all(
            name in ("set", "item") or not value or math.isfinite(float(value))
            for name, value in zip(head, row, strict=True)
        ):
            raise ValueError("expected a table of numbers")
    return text


_Items = Annotated[str, AfterValidator(_numbers_of)]


@dataclass(frozen=True)
class StudyFolder:
    """Where studies lie: ``runs/`` with the runs of all of them, and a folder for each study.

    Beside ``runs/KEY``, which is the folder of a run, lie ``KEY.toml`` with its recipe, ``KEY.log``
    with what it said, ``KEY.facts.json`` with what it ran on, ``KEY.failed.json`` where it failed,
    and ``KEY.scores/`` with its scores and what is behind them. An output of a command or a
    function is ``KEY.output.json``. Everything is whole or not there.
    """

    path: Path

    @property
    def runs(self) -> Path:
        """Return the folder of all runs."""
        return self.path / "runs"

    def run(self, key: str) -> Path:
        """Return the folder of a run."""
        return self.runs / key

    def beside(self, key: str, ending: str) -> Path:
        """Return a file beside a run."""
        return self.runs / f"{key}.{ending}"

    def scores(self, key: str, name: str) -> Path:
        """Return a file beside a run's scores.

        ``SCORING.json`` has its scores in a setting; ``.tsv`` the cosine of each graded pair behind
        them, ``.items.tsv`` the rank or hit of each document or text.
        """
        return self.runs / f"{key}.scores" / name

    def dev(self, name: str) -> Path:
        """Return the file of a dev set; that of a data set is written before runs begin."""
        return Path(name) if os.path.isfile(name) else self.runs / ".dev" / f"{name}.csv"

    def study(self, name: str) -> Path:
        """Return the folder of a study's results."""
        return self.path / name

    def trained(self, key: str) -> bool:
        """Tell whether a run is finished."""
        return (self.run(key) / RESULT).is_file()

    def without_model(self, key: str) -> bool:
        """Tell whether a finished run was unpacked: what it says is here, and its model is not."""
        return self.trained(key) and not (self.run(key) / RUN_FILE).is_file()

    def begun(self, key: str) -> bool:
        """Tell whether a run can be resumed."""
        run = self.run(key)
        saved = (run / "checkpoints").glob("*step-*")  # that of step 0 is older than run.toml
        return (run / RUN_FILE).is_file() or any(path.name[0] != "." for path in saved)

    def warned(self, key: str) -> list[str]:
        """Read the warnings of a run or call from its log; none where the log is not here."""
        with suppress(OSError):
            lines = self.beside(key, "log").read_text("utf-8", "replace").splitlines()
            said = [line.removeprefix(_WARNING) for line in lines if line.startswith(_WARNING)]
            return [re.sub(rf"^\S*{key}: ", "", line) for line in said]
        return []

    def drop_checkpoints(self, key: str) -> None:
        """Delete the checkpoints of a finished run; its model and its metrics stay."""
        if self.trained(key):
            shutil.rmtree(self.run(key) / "checkpoints", ignore_errors=True)

    @contextmanager
    def locked(self, key: str, waiting: Callable[[], None]) -> Iterator[IO[str]]:
        """Keep every other process from making a run; a child that inherits the file keeps it too.

        ``waiting`` is called again and again while another process makes it; it raises to give up.
        """
        path = self.runs / ".locks" / key
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+", encoding="utf-8") as file:
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    waiting()
                    time.sleep(_WAIT)
            yield file


def parsed(text: str) -> dict[str, Any]:
    """Return a JSON object, an empty one where a text is none."""
    try:
        table = json.loads(text)
    except ValueError:
        return {}
    return table if isinstance(table, dict) else {}


def read_table(path: Path) -> dict[str, Any]:
    """Return the JSON object of a file, an empty one of a missing file."""
    hint = "remove it, and start the study again"
    table: dict[str, Any] | None = read_json(path, {}, hint)
    return table or {}


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON object, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(path, json.dumps(content, indent=1, ensure_ascii=False, default=str) + "\n")


_FACTS: dict[str, Any] = dict.fromkeys(("commit", "date", "machine", "system", "processor"), str)
_RAN = {"device": str, "precision": str, "threads": (int, type(None)),
        "processes": (int, type(None)), "data": {"fingerprint": str}}  # fmt: skip
_SHAPE = {"result": RESULT_SHAPE, "facts": {**_FACTS, "run": _RAN, "versions": dict},
          "scores": {...: EVALUATION_SHAPE}}  # fmt: skip
"""What is read of the lines; anything else that they hold is kept as it is."""


class _Packed(BaseModel):
    """A run in such a file; scores and their items by the key of their setting, and its ending."""

    key: _Key
    result: dict[str, Any]
    facts: dict[str, Any]
    scores: dict[_Key, dict[str, Any]]
    items: dict[_Key, dict[Literal[".tsv", ".items.tsv"], _Items]] = {}


def pack(folder: StudyFolder, keys: Iterable[str], file: Path) -> int:
    """Write the finished runs among ``keys`` as gzipped lines of JSON; return how many.

    A line has ``key``, ``result``, ``facts``, and by the key of their setting ``scores`` and
    ``items``, the cosines, ranks and hits behind them. Vectors, models, test sentences and names of
    folders are left out.
    """
    lines = [line for key in dict.fromkeys(keys) if (line := _packed(folder, key))]
    text = "".join(json.dumps(line, ensure_ascii=False, sort_keys=True) + "\n" for line in lines)
    with disk_errors(file), atomic_file(file) as beside:
        beside.write_bytes(gzip.compress(text.encode(), mtime=0))
    return len(lines)


def _packed(folder: StudyFolder, key: str) -> dict[str, Any] | None:
    result = read_table(folder.run(key) / RESULT)
    files = sorted(folder.scores(key, "any").parent.glob("*.json"))
    scores = {file.stem: read_table(file) for file in files if _KEY.fullmatch(file.stem)}
    if not (result or scores):
        return None
    said = {"result": result, "facts": facts_of(folder, key), "scores": scores}
    items = {name: found for name in scores if (found := _items(folder, key, name))}
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
            lines = folder.scores(key, f"{scoring}{ending}").read_text("utf-8").splitlines()
            columns = 3 if ending == ITEMS[0] else None  # set, gold, cosine
            kept = ["\t".join(line.split("\t")[:columns]) for line in lines]
            tables[ending] = "\n".join(kept) + "\n"
    return tables


def _without_places(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            name: _without_places(item) for name, item in value.items() if name not in _LEFT_OUT
        }
    return value


def unpack(folder: StudyFolder, file: Path) -> tuple[int, int]:
    """Take the runs of a file that :func:`pack` wrote; one that is there already stays as it is.

    Nothing is taken of a file with something else in it.

    Returns:
        How many were taken, and how many the file has.
    """
    lines = list(_read(file))
    taken = 0
    with disk_errors(folder.path):
        for line in lines:
            key, result = line.key, line.result
            if folder.trained(key) or folder.begun(key):
                continue
            files = {folder.scores(key, f"{name}.json"): scores
                     for name, scores in line.scores.items()}  # fmt: skip
            if not result and all(file.is_file() for file in files):  # a model nobody trained
                continue
            for file_, scores in files.items():
                write_json(file_, scores)
            for name, tables in line.items.items():
                for ending, text in tables.items():
                    atomic_write(folder.scores(key, f"{name}{ending}"), text)
            write_json(folder.beside(key, "facts.json"), line.facts)
            if result:  # last: it says that the rest is there
                write_json(folder.run(key) / RESULT, result)
            taken += 1
    return taken, len(lines)


def _read(file: Path) -> Iterator[_Packed]:
    hint = "cse study NAME --pack FILE writes such a file"
    try:
        if file.exists() and not file.is_file():
            raise OSError(errno.EINVAL, "it is not a regular file")
        with gzip.open(file) as opened:
            content = opened.read(_MAX_BYTES + 1)
        text = content.decode()
    except OSError as error:
        what = f"cannot be read: {error.strerror or 'it is not gzipped'}"
        raise CseError(what, where="--unpack", value=str(file), hint=hint) from None
    except (EOFError, ValueError, zlib.error):
        raise CseError("was cut short", where="--unpack", value=str(file), hint=hint) from None
    if len(content) > _MAX_BYTES:
        what = f"unpacks to more than {_MAX_BYTES:,} bytes"
        raise CseError(what, where="--unpack", value=str(file), hint="pack fewer runs to a file")
    for number, line in enumerate(text.splitlines(), 1):
        try:
            read = json.loads(line, parse_constant=_finite, parse_float=_finite)
            run = _Packed.model_validate(read)
        except (ValueError, RecursionError):
            what = f"line {number} is not a run"
            raise CseError(what, where="--unpack", value=str(file), hint=hint) from None
        check_shape(read, _SHAPE, file, hint, f"line {number}")
        yield run


def _finite(text: str) -> float:
    """Read a number; NaN and infinities, which no score is, are no JSON either."""
    if not math.isfinite(value := float(text)):
        raise ValueError(text)
    return value
