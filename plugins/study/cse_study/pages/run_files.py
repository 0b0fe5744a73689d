"""A run as its folder tells it: settings, state, lines of metrics, and kept scores."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from cse_core.errors import CseError
from cse_core.recipes.reading import read_toml
from cse_core.runtime.model_files import RUN_FILE
from cse_core.training.run_folder import EVALUATIONS, FOLDERS, LOCK, METRICS, RESULT
from cse_study.planning.composing import flat_options
from cse_study.results.scores import MAIN

DEPTH = 4
"""Folders below the one that is searched for runs."""
_HINT = "no run of this version writes it so; remove it, and what else the file says is shown"
_OWN = ("run", "versions")
"""Tables of ``run.toml`` that say how it was run; the others are settings."""


@dataclass(frozen=True)
class Score:
    """A number that ``cse eval`` kept of a run.

    Attributes:
        set: Test set.
        number: What was measured on it.
        value: The number.
        setting: The encoder's setting and what else the score depends on.
        texts: Fingerprint of its texts; of a mean, the sets.
        time: When it was measured.
    """

    set: str
    number: str
    value: float
    setting: str
    texts: str = ""
    time: str = ""

    @property
    def name(self) -> str:
        """Return the set with the number."""
        return f"{self.set}.{self.number}"


@dataclass(frozen=True)
class Run:
    """A run.

    Attributes:
        path: Its folder.
        settings: What ``run.toml`` holds.
        result: What it ended with; empty where it has not.
        running: Whether a process trains into it now.
        lines: Of its metrics.
        evaluations: What ``cse eval`` kept, oldest first.
    """

    path: Path
    settings: Mapping[str, Any]
    result: Mapping[str, Any] = field(default_factory=dict)
    running: bool = False
    lines: Sequence[Mapping[str, float]] = ()
    evaluations: Sequence[Mapping[str, Any]] = ()

    @property
    def name(self) -> str:
        """Return the name of its folder."""
        return shown(self.path.resolve().name)

    @property
    def texts(self) -> str:
        """Return the digest of the texts that it trained on."""
        return str(self.settings.get("run", {}).get("data", {}).get("fingerprint", ""))

    @property
    def state(self) -> str:
        """Return ``finished``, ``running`` or ``stopped``."""
        return "finished" if self.result else "running" if self.running else "stopped"

    @property
    def steps(self) -> int:
        """Return how many steps it has made, over all rounds; of an unfinished one, as logged."""
        if "steps" in self.result:
            return int(self.result["steps"])
        last: dict[float, float] = {}
        for line in self.lines:
            last[line.get("round", 0)] = max(last.get(line.get("round", 0), 0), line["step"])
        return int(sum(last.values()))

    @property
    def dev(self) -> tuple[str, float] | None:
        """Return the dev score that chose its checkpoint, the best so far of an unfinished run."""
        name, score = self.result.get("chosen_by"), self.result.get("score")
        if name and score is not None:
            return str(name), float(score)
        if self.result:
            return None
        wanted = self.dev_names
        values = [line[wanted[0]] for line in self.lines if wanted and wanted[0] in line]
        return (wanted[0], max(values)) if values else None

    @property
    def dev_names(self) -> list[str]:
        """Return the main score of each dev set in its metrics."""
        sets = self.settings.get("run", {}).get("data", {}).get("dev", [])
        keys = dict.fromkeys(key for line in self.lines for key in line)
        chosen = self.result.get("chosen_by")
        main = [key for key in keys if key.rpartition(".")[2] in MAIN]
        named = [key for key in main if key == chosen or key.rpartition(".")[0] in sets]
        return sorted(named or main, key=lambda key: key != chosen)

    @property
    def options(self) -> dict[str, Any]:
        """Return its settings by path; a part's begins with its kind and name."""
        own = {name: table for name, table in self.settings.items() if name not in _OWN}
        return flat_options(own)

    @property
    def scores(self) -> list[Score]:
        """Return the newest score of each set, number, setting and texts, the newest at the end."""
        found: dict[tuple[str, ...], Score] = {}
        for evaluation in self.evaluations:
            for score in scores_of(evaluation):
                key = score.set, score.number, score.setting, score.texts
                found.pop(key, None)
                found[key] = score
        return list(found.values())

    @property
    def test(self) -> Score | None:
        """Return the newest score of its tests: a mean over sets, else the first set's."""
        dev = None
        for evaluation in reversed(self.evaluations):
            main = [score for score in scores_of(evaluation) if score.number in MAIN]
            means = [score for score in main if score.set.startswith("mean-of-")]
            tests = [score for score in main if ".dev" not in score.set]
            if means or tests:
                return [*means[-1:], *tests][0]
            dev = dev or next(iter(main), None)
        return dev

    def about(self) -> dict[str, Any]:
        """Return what a listing says of it."""
        model, data = self.settings.get("model", {}), self.settings.get("data", {})
        train, own = self.settings.get("train", {}), self.settings.get("run", {})
        return {
            "run": shown(self.path),
            "name": self.name,
            "recipe": str(self.settings.get("name") or "-"),
            "model": str(model.get("name", "")),
            "data": [str(each) for each in data.get("path", [])],
            "rows": own.get("data", {}).get("rows"),
            "steps": self.steps,
            "seed": train.get("seed"),
            "state": self.state,
            "seconds": self.result.get("seconds"),
        }


def scores_of(evaluation: Mapping[str, Any]) -> Iterator[Score]:
    """Yield the numbers of a line of ``evaluations.jsonl``."""
    options = evaluation.get("options", {})
    changes = {name: options[name] for name in ("aug", "dropout", "similarity") if name in options}
    more = [f"{name} {value}" for name, value in changes.items() if value not in (None, [], False)]
    for name, content in evaluation.get("results", {}).items():
        words = [str(evaluation.get("encoder", "")), *more]
        if content.get("setting", "all") != "all":
            words.append(str(content["setting"]))
        texts = content.get("fingerprint", ", ".join(content.get("sets", [])))
        for number, value in content.items():
            value = value.get("value") if isinstance(value, Mapping) else value
            if isinstance(value, float):
                yield Score(
                    name, number, value, "; ".join(filter(None, words)),
                    str(texts), str(evaluation.get("time", "")),
                )  # fmt: skip


def shown(path: Path | str) -> str:
    """Return a path as text that every page can hold, whatever its bytes are."""
    return os.fsencode(path).decode("utf-8", "replace")


class _Settings(BaseModel):
    """What is read of ``run.toml``."""

    name: str | None = None
    model: dict[str, Any] = {}
    data: dict[str, Any] = {}
    train: dict[str, Any] = {}
    run: dict[str, Any] = {}


class _Result(BaseModel):
    """What is read of ``result.json``."""

    steps: int | None = None
    chosen_by: str | None = None
    score: float | None = None
    scores: dict[str, float | None] = {}


class _Line(BaseModel):
    """What every line of metrics has."""

    step: int
    round: int = 0


class _Evaluation(BaseModel):
    """What is read of a line of ``evaluations.jsonl``."""

    options: dict[str, Any] = {}
    results: dict[str, dict[str, Any]] = {}


def read_run(path: Path) -> Run:
    """Read the folder of a run.

    Raises:
        CseError: If it holds none, or what it holds was not written by a run.
    """
    file = path / RUN_FILE
    if not file.is_file():
        hint = "name the folder that `cse train` made, such as runs/NAME"
        raise CseError("is not a run: it has no run.toml", where="run", value=str(path), hint=hint)
    settings = read_toml(file, str(file))
    _check(_Settings, settings, str(file))
    return Run(
        path,
        settings,
        next(iter(_objects(path / RESULT, _Result, whole=True)), {}),
        running=_held(path / LOCK),
        lines=list(_objects(path / METRICS, _Line)),
        evaluations=list(_objects(path / EVALUATIONS, _Evaluation)),
    )


def find_runs(folders: Iterable[Path], failed: Callable[[CseError], object]) -> list[Run]:
    """Return the runs in and below folders, the oldest first, none twice.

    Args:
        folders: Folders of runs, or above them.
        failed: Is given the error of each run that cannot be read; the others are read.

    Raises:
        CseError: If no such folder is there.
    """
    found: dict[Path, Path] = {}
    for folder in folders:
        if not folder.is_dir():
            raise CseError("no such folder", where="run", value=str(folder))
        found |= {path.resolve(): path for path in _below(folder, DEPTH)}
    runs: list[tuple[float, Run]] = []
    for path in found.values():
        try:
            runs.append(((path / RUN_FILE).stat().st_mtime, read_run(path)))
        except FileNotFoundError:  # it was removed while the others were read
            continue
        except CseError as error:
            failed(error)
    return [run for _, run in sorted(runs, key=lambda each: each[0])]


def _below(folder: Path, depth: int) -> Iterator[Path]:
    if (folder / RUN_FILE).is_file():
        yield folder
    elif depth:
        for each in sorted(folder.iterdir()):
            if each.is_dir() and not each.is_symlink() and each.name not in FOLDERS:
                yield from _below(each, depth - 1)


def _objects(file: Path, kind: type[BaseModel], *, whole: bool = False) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a file; a line that is not whole, as of a killed run, is none.

    Raises:
        CseError: If an object is not of its kind, or a file that is one object is none.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise CseError(f"cannot be read: {error}", where=str(file)) from None
    for number, line in enumerate([text] if whole else text.splitlines(), 1):
        try:
            value = json.loads(line)
        except ValueError:
            if whole:
                raise CseError("is not JSON", where=str(file), hint=_HINT) from None
            continue
        _check(kind, value, str(file) if whole else f"{file}:{number}")
        yield value


def _check(kind: type[BaseModel], value: Any, where: str) -> None:
    try:
        kind.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        what = first["msg"][0].lower() + first["msg"][1:]
        raise CseError(f"{place}: {what}" if place else what, where=where, hint=_HINT) from None


def _held(path: Path) -> bool:
    """Tell whether a process holds the lock of a run."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
