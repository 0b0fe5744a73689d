"""Runs as their folders say them: read, put side by side, and grouped over seeds."""

from __future__ import annotations

import fcntl
import json
import os
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from cse import open_run
from cse_cli.api import visible
from cse_core.errors import CseError, collect_errors, raise_all
from cse_core.files import FOLDERS, LOCK, RUN_FILE
from cse_study.pages.figures import Series
from cse_study.planning.composing import NO_MATTER, flat_options
from cse_study.results.rows import MAIN

MAX_DEPTH = 4
"""Folders below the one that is searched for runs."""
MAX_DRAWN = 1e300
"""Numbers from here on are not drawn: nothing could reach from one to its negative."""
UNSET = "-"
"""What a run has at a path that it does not know."""
_OWN = ("run", "versions")
"""Tables of ``run.toml`` that say how it was run; the others are settings."""
_MAY_DIFFER = frozenset(f"train.{name}" for name in ("seed", *NO_MATTER))
"""Options in which runs that are drawn as one may differ."""


@dataclass(frozen=True)
class Score:
    """A number that ``cse eval`` kept of a run.

    Attributes:
        number: What was measured on the set.
        setting: The encoder's setting and what else the score depends on.
        texts: Fingerprint of its texts; of a mean, the sets.
    """

    set: str
    number: str
    value: float
    setting: str
    texts: str = ""

    @property
    def name(self) -> str:
        """Return the set with the number."""
        return f"{self.set}.{self.number}"


class Run:
    """A run.

    Attributes:
        settings: What ``run.toml`` holds.
        result: What it ended with; empty where it has not.
        running: Whether a process trains into it now.
        lines: Of its metrics.
        evaluations: What ``cse eval`` kept, oldest first.
    """

    def __init__(self, path: Path) -> None:
        stored = open_run(path)
        self.path, self.settings, self.result = path, stored.settings, stored.result or {}
        self.running = _is_locked(path / LOCK)
        self.lines = [line for line in stored.metrics if line.get("step") is not None]
        self.evaluations = stored.evaluations

    @property
    def name(self) -> str:
        """Return the name of its folder."""
        return visible(self.path.resolve().name)

    @property
    def seed(self) -> Any:
        """Return its seed."""
        return self.settings.get("train", {}).get("seed")

    @property
    def texts(self) -> str:
        """Return the digest of the texts that it trained on."""
        return str(self.settings.get("run", {}).get("data", {}).get("fingerprint", ""))

    @property
    def state(self) -> str:
        """Return ``finished``, ``running`` or ``stopped``."""
        return "finished" if self.result else "running" if self.running else "stopped"

    @property
    def places(self) -> list[tuple[int, Mapping[str, float]]]:
        """Return its lines with their steps, counted over all rounds."""
        logged: list[tuple[int, Mapping[str, float]]] = []
        for _, lines in groupby(self.lines, key=lambda line: line.get("round", 0)):
            before = logged[-1][0] if logged else 0
            logged += [(before + int(line["step"]), line) for line in lines]
        return logged

    @property
    def steps(self) -> int:
        """The number of steps over all rounds; of an unfinished run, as logged."""
        if "steps" in self.result:
            return int(self.result["steps"])
        return self.places[-1][0] if self.lines else 0

    @property
    def dev(self) -> tuple[str, float] | None:
        """Return the dev score that chose its checkpoint, the best so far of an unfinished run."""
        name, score = self.result.get("chosen_by"), self.result.get("score")
        if name and score is not None:
            return str(name), float(score)
        wanted = next(iter(self.dev_names), None)
        values = [line[wanted] for line in self.lines if wanted is not None and wanted in line]
        return (str(wanted), max(values)) if values and not self.result else None

    @property
    def dev_names(self) -> list[str]:
        """Return the main score of each dev set in its metrics."""
        sets = self.settings.get("run", {}).get("data", {}).get("dev", [])
        chosen = self.result.get("chosen_by")
        main = [key for key in self.keys if key.rpartition(".")[2] in MAIN]
        named = [key for key in main if key == chosen or key.rpartition(".")[0] in sets]
        return sorted(named or main, key=lambda key: key != chosen)

    @property
    def keys(self) -> list[str]:
        """Return the keys of its metrics."""
        return list(dict.fromkeys(key for line in self.lines for key in line))

    def find_key(self, name: str) -> str | None:
        """Return the key of its metrics that a short name means.

        ``dev`` is the score of the dev set that chooses; ``uniformity`` is that of this dev set, or
        of the batch where there is none; any other name is the key itself or its last words.
        """
        if name == "dev":
            return next(iter(self.dev_names), None)
        sets = [key.rpartition(".")[0] for key in self.dev_names]
        wanted = [name, *(f"{part}.{name}" for part in [*sets, "batch"])]
        wanted += [key for key in self.keys if key.endswith(f".{name}")]
        return next((key for key in wanted if key in self.keys), None)

    @property
    def options(self) -> dict[str, Any]:
        """Return its settings by path; a part's begins with its kind and name."""
        kept = {name: table for name, table in self.settings.items() if name not in _OWN}
        return flat_options(kept)

    @property
    def scores(self) -> list[Score]:
        """Return the newest score of each set, number, setting and texts, the newest at the end."""
        kept: dict[tuple[str, ...], Score] = {}
        for score in (score for part in self.evaluations for score in scores_of(part)):
            key = score.set, score.number, score.setting, score.texts
            kept.pop(key, None)
            kept[key] = score
        return list(kept.values())

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
        """Return the facts of the run for a listing."""
        return {
            "run": str(self.path),
            "name": self.name,
            "recipe": str(self.settings.get("name") or "-"),
            "model": str(self.settings.get("model", {}).get("name", "")),
            "data": [str(path) for path in self.settings.get("data", {}).get("path", [])],
            "rows": self.settings.get("run", {}).get("data", {}).get("rows"),
            "steps": self.steps,
            "seed": self.seed,
            "state": self.state,
            "seconds": self.result.get("seconds"),
            "dev": self.dev and {"name": self.dev[0], "score": self.dev[1]},
        }


def scores_of(evaluation: Mapping[str, Any]) -> Iterator[Score]:
    """Yield the numbers of a line of ``evaluations.jsonl``."""
    for name, content in evaluation.get("results", {}).items():
        setting = str(content.get("setting", "all"))
        words = [str(evaluation.get("encoder", "")), "" if setting == "all" else setting]
        texts = str(content.get("fingerprint", ", ".join(content.get("sets", []))))
        for number, value in content.items():
            value = value.get("value") if isinstance(value, Mapping) else value
            if isinstance(value, float):
                yield Score(name, number, value, "; ".join(filter(None, words)), texts)


def find_runs(folders: Iterable[Path], failed: Callable[[CseError], object]) -> list[Run]:
    """Return the runs in and below folders, the oldest first, none twice.

    ``failed`` is given the error of each run that cannot be read, if others can be; else all
    are raised.
    """
    paths: dict[Path, Path] = {}
    errors: list[CseError] = []
    for folder in folders:
        if not folder.is_dir():
            raise CseError("no such folder", where="run", value=str(folder))
        paths |= {path.resolve(): path for path in _below(folder, MAX_DEPTH, errors)}
    runs: list[tuple[float, Run]] = []
    for path in paths.values():
        # One may be removed while the others are read.
        with suppress(FileNotFoundError), collect_errors(errors):
            runs.append(((path / RUN_FILE).stat().st_mtime, Run(path)))
    if not runs:
        raise_all(errors)
    for error in errors:
        failed(error)
    return [run for _, run in sorted(runs, key=lambda pair: pair[0])]


def _below(folder: Path, depth: int, errors: list[CseError]) -> Iterator[Path]:
    try:
        is_run = (folder / RUN_FILE).is_file()
        inside = [] if is_run or not depth else sorted(folder.iterdir())
    except OSError as error:
        errors.append(CseError(f"cannot be read: {error.strerror}", where=str(folder)))
        return
    if is_run:
        yield folder
    for path in inside:
        if path.is_dir() and not path.is_symlink() and path.name not in FOLDERS:
            yield from _below(path, depth - 1, errors)


def _is_locked(path: Path) -> bool:
    """Tell whether a process holds the lock of a run."""
    if not path.is_file():  # a pipe would wait for its writer
        return False
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:  # others: it cannot be locked here
        return isinstance(error, BlockingIOError)
    return False


def called(runs: Sequence[Run]) -> list[str]:
    """Return a name for each run: that of its folder, or as much of its path as tells them apart.

    Runs that cannot be distinguished so have a number behind the name.
    """
    paths = [run.path.resolve().parts for run in runs]
    for count in range(1, max(map(len, paths), default=0) + 1):
        names = [visible("/".join(parts[-count:])) for parts in paths]
        if len(set(names)) == len(names):
            return names
    return [f"{run.name} ({number})" for number, run in enumerate(runs, 1)]


def different_settings(runs: Sequence[Run]) -> dict[str, list[Any]]:
    """Return the settings that differ, by path, with the value of each run.

    Texts in files of one name, and how far runs came, count as settings. A part that a run lacks is
    one setting, ``aug.fgsm``.
    """
    options = [run.options for run in runs]
    rows: dict[str, list[Any]] = {}
    paths = dict.fromkeys(path for table in options for path in table)
    parts = {path.removesuffix(".use") for path in paths if path.endswith(".use")}
    for path in paths:
        part = next((part for part in parts if path.startswith(f"{part}.")), None)
        if part is not None and path == f"{part}.name":
            continue
        if part is not None and any(f"{part}.use" not in table for table in options):
            rows[part] = [table.get(f"{part}.use", UNSET) for table in options]
        else:
            rows[path] = [table.get(path, UNSET) for table in options]
    rows["contents of the texts"] = [run.texts for run in runs]
    rows["state"] = [run.state for run in runs]
    return {path: values for path, values in rows.items()
            if any(value != values[0] for value in values)}  # fmt: skip


def scores_beside(runs: Sequence[Run]) -> dict[str, list[float | None]]:
    """Return scores by name, with the value of each run, None where it was not measured.

    Of each set there is one number, and the dev score. Scores of other settings or other texts are
    rows of their own, with the setting behind the name.
    """
    rows: dict[tuple[str, str, str], list[float | None]] = {}
    for place, run in enumerate(runs):
        values: dict[tuple[str, str, str], float] = {}
        if run.dev is not None:
            values[f"dev{'' if run.result else ' so far'}: {run.dev[0]}", "", ""] = run.dev[1]
        for score in run.scores:
            if score.number in MAIN:
                values[score.name, score.setting, score.texts] = score.value
        for key, value in values.items():
            rows.setdefault(key, [None] * len(runs))[place] = value
    settings: dict[str, set[str]] = {}
    for name, setting, _ in rows:
        settings.setdefault(name, set()).add(setting)
    table: dict[str, list[float | None]] = {}
    for (name, setting, texts), cells in rows.items():
        label = f"{name} ({setting})" if len(settings[name]) > 1 else name
        table[f"{label} [texts {texts[:30]}]" if label in table else label] = cells
    return table


@dataclass(frozen=True)
class Group:
    """Runs of equal settings, each with another seed."""

    label: str
    runs: tuple[Run, ...]


def groups_of(runs: Sequence[Run]) -> list[Group]:
    """Return runs by their settings without the seed, in the order of the first of each."""
    names = dict(zip(map(id, runs), called(runs), strict=True))
    groups: dict[str, list[Run]] = {}
    for run in runs:
        options = {path: value for path, value in run.options.items() if path not in _MAY_DIFFER}
        key = json.dumps([options, run.texts], sort_keys=True, default=str)
        while any(other.seed == run.seed for other in groups.get(key, [])):
            key += "'"  # runs with one seed twice are not draws of one thing
        groups.setdefault(key, []).append(run)
    labels = []
    for group in groups.values():
        common = os.path.commonprefix([names[id(run)] for run in group]).rstrip("-_/. ")
        labels.append(names[id(group[0])] if len(group) == 1 else common or group[0].name)
    return [
        Group(label if labels.count(label) == 1 else names[id(group[0])], tuple(group))
        for label, group in zip(labels, groups.values(), strict=True)
    ]


def over_steps(groups: Sequence[Group], name: str) -> list[Series]:
    """Return a number of metrics over steps, a series for each group with mean and deviation.

    ``name`` is short, as :meth:`Run.find_key` takes it.
    """
    series = []
    for group in groups:
        values: dict[int, list[float]] = {}
        for run in group.runs:
            key = run.find_key(name)
            for step, line in run.places:
                value = line.get(key) if key is not None else None
                if value is not None and abs(value) < MAX_DRAWN:  # and so a number
                    values.setdefault(step, []).append(float(value))
        if values:
            lists = [values[step] for step in sorted(values)]
            spread = [statistics.stdev(cells) if len(cells) > 1 else None for cells in lists]
            means = [statistics.fmean(cells) for cells in lists]
            series.append(Series(group.label, sorted(values), means, spread, list(map(len, lists))))
    return series
