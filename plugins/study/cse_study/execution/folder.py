"""The folder of all studies: what lies where, and which runs are there."""

from __future__ import annotations

import fcntl
import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from cse_core.runtime.atomic_files import atomic_write
from cse_core.runtime.model_files import RUN_FILE
from cse_core.training.run_folder import METRICS, RESULT, RunFolder

_WAIT = 0.5
"""Seconds between two looks at a lock that another process holds."""


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
        folder = RunFolder(self.run(key))
        return (folder.path / RUN_FILE).is_file() or folder.start.is_dir()

    def drop_checkpoints(self, key: str) -> None:
        """Delete the checkpoints of a finished run; its model and its metrics stay."""
        if self.trained(key):
            shutil.rmtree(RunFolder(self.run(key)).start.parent, ignore_errors=True)

    def step(self, key: str) -> int | None:
        """Return the last step in the metrics of a run that is under way."""
        try:
            lines = (self.run(key) / METRICS).read_text(encoding="utf-8").splitlines()
        except OSError:
            return None
        steps = (parsed(line).get("step") for line in reversed(lines))
        return next((step for step in steps if step is not None), None)

    @contextmanager
    def locked(self, key: str, waiting: Callable[[], None]) -> Iterator[IO[str]]:
        """Keep every other process from making a run; a child that inherits the file keeps it too.

        Args:
            key: Of the run.
            waiting: Called again and again while another process makes it; raises to give up.
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
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object of a file, an empty one where there is none."""
    try:
        return parsed(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON object, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(path, json.dumps(content, indent=1, ensure_ascii=False, default=str) + "\n")
