"""Finished runs in one small file: what they say, without models, for another machine to add to."""

from __future__ import annotations

import gzip
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, StringConstraints, ValidationError

from cse_core.errors import CseError
from cse_core.runtime.atomic_files import atomic_file, disk_errors
from cse_core.runtime.model_files import RUN_FILE
from cse_core.training.run_folder import RESULT
from cse_study.execution.folder import StudyFolder, read_json, write_json

_KEY = re.compile(r"[0-9a-f]{16}")
_LEFT_OUT = frozenset({"machine", "model", "file", "folder", "words", "subsets"})
"""What says where something lay, and parts of scores that no table shows."""


_Key = Annotated[str, StringConstraints(pattern=f"^{_KEY.pattern}$")]


class _Packed(BaseModel):
    """A run in such a file; scores by the key of their setting."""

    key: _Key
    result: dict[str, Any]
    facts: dict[str, Any]
    scores: dict[_Key, dict[str, Any]]


def pack(folder: StudyFolder, keys: Iterable[str], file: Path) -> int:
    """Write the finished runs among ``keys`` as gzipped lines of JSON; return how many.

    A line has ``key``, ``result``, ``facts`` and ``scores`` by the key of their setting. Vectors,
    models, test sentences and names of folders are left out.

    Raises:
        CseError: If the file cannot be written.
    """
    found = [line for key in dict.fromkeys(keys) if (line := _packed(folder, key))]
    text = "".join(json.dumps(line, ensure_ascii=False, sort_keys=True) + "\n" for line in found)
    with disk_errors(file), atomic_file(file) as beside:
        beside.write_bytes(gzip.compress(text.encode(), mtime=0))
    return len(found)


def _packed(folder: StudyFolder, key: str) -> dict[str, Any] | None:
    result = read_json(folder.run(key) / RESULT)
    files = sorted(folder.scores(key, "any").parent.glob("*.json"))
    scores = {file.stem: read_json(file) for file in files if _KEY.fullmatch(file.stem)}
    if not (result or scores):
        return None
    facts = read_json(folder.beside(key, "facts.json"))
    record: dict[str, Any] = {}
    if (folder.run(key) / RUN_FILE).is_file():
        record = tomllib.loads((folder.run(key) / RUN_FILE).read_text(encoding="utf-8"))
    facts |= {name: record[name] for name in ("run", "versions") if name in record}
    said = {"result": result, "facts": facts, "scores": scores}
    return {"key": key, **_without_places(said)}


def _without_places(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            name: _without_places(each) for name, each in value.items() if name not in _LEFT_OUT
        }
    return value


def unpack(folder: StudyFolder, file: Path) -> tuple[int, int]:
    """Take the runs of a file that :func:`pack` wrote; one that is there already stays as it is.

    Returns:
        How many were taken, and how many the file has.

    Raises:
        CseError: If it is a file of something else; nothing is taken then.
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
            write_json(folder.beside(key, "facts.json"), line.facts)
            if result:  # last: it says that the rest is there
                write_json(folder.run(key) / RESULT, result)
            taken += 1
    return taken, len(lines)


def _read(file: Path) -> Iterator[_Packed]:
    hint = "cse study NAME --pack FILE writes such a file"
    try:
        text = gzip.decompress(file.read_bytes()).decode()
    except OSError as error:
        what = f"cannot be read: {error.strerror or 'it is not gzipped'}"
        raise CseError(what, where="--unpack", value=str(file), hint=hint) from None
    except (EOFError, ValueError):
        raise CseError("was cut short", where="--unpack", value=str(file), hint=hint) from None
    for number, line in enumerate(text.splitlines(), 1):
        try:
            yield _Packed.model_validate_json(line)
        except ValidationError:
            what = f"line {number} is not a run"
            raise CseError(what, where="--unpack", value=str(file), hint=hint) from None
