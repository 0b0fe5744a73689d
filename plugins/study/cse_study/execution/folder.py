"""The folder of all studies: what lies where, and which runs are there."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from cse_cli.api import read_json
from cse_core.files import RESULT, RUN_FILE, atomic_write

_WAIT = 0.5
"""Seconds between two looks at a lock that another process holds."""
_WARNING = "warning: "
"""What a line of a log begins with that warns."""
ITEMS = (".tsv", ".items.tsv")
"""Endings of the files with what is behind the scores of a setting: cosines, ranks and hits."""


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
