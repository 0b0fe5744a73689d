"""How a study is shown while it runs: a line for each run, and a bar on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from cse_cli.terminal.console import cleaned, console, echo_err
from cse_study.execution.folder import StudyFolder
from cse_study.execution.jobs import Done
from cse_study.execution.running import Watcher
from cse_study.planning.durations import in_words
from cse_study.planning.plan import Plan

_SECONDS_BETWEEN_LINES = 30.0


class Shown(Watcher):
    """Prints a line when a run ends, and now and then how far the others are.

    Args:
        plan: The plan.
        folder: Where runs lie.
        left: How many there are to make.
        ended: Called behind each end, to write the results.
        shown: Whether anything is printed.
    """

    def __init__(
        self, plan: Plan, folder: StudyFolder, left: int, ended: Callable[[], None], shown: bool
    ) -> None:
        self._folder, self._left, self._ended, self._shown = folder, left, ended, shown
        self._names = names_of(plan)
        self._steps = {key: run.steps for key, run in plan.runs.items()}
        self._running: dict[str, float] = {}
        self._done = 0
        self._told = time.monotonic()
        self.status: Any = None

    def begun(self, key: str) -> None:
        """Note that a run was given to a worker."""
        self._running[key] = time.monotonic()

    def ended(self, done: Done) -> None:
        """Print what became of a run."""
        self._running.pop(done.key, None)
        self._done += 1
        self._ended()
        if self._shown:
            what = f"in {in_words(done.seconds)}" if done.status == "done" else done.line
            verb = "" if done.status == "done" else f"{done.status}: "
            name = self._names.get(done.key, done.key)
            echo_err(f"{self._done} of {self._left}: {name}: {verb}{what}")

    def look(self) -> None:
        """Show how far the runs under way are: those whose steps have begun."""
        if not self._shown:
            return
        now = time.monotonic()
        if self.status is None and now - self._told < _SECONDS_BETWEEN_LINES:
            return
        self._told = now
        steps = {key: self._folder.step(key) for key in self._running}
        words = [
            f"{self._names.get(key, key)}: step {step:,}" + self._of(key)
            for key, step in steps.items()
            if step is not None
        ]
        text = f"{self._done} of {self._left} done; " + ("; ".join(words) or "starting")
        if self.status is not None:
            self.status.update(cleaned(text))
        elif words:
            echo_err(text)

    def _of(self, key: str) -> str:
        total = self._steps.get(key)
        return f" of {total:,}" if total else ""


@contextmanager
def watching(watcher: Shown) -> Iterator[Shown]:
    """Draw the watcher's last line on a terminal as long as a block takes."""
    if not sys.stderr.isatty():
        yield watcher
        return
    with console(err=True).status("starting") as status:
        watcher.status = status
        yield watcher


def names_of(plan: Plan) -> Mapping[str, str]:
    """Return what lines call each run: its first point and its seed."""
    several = len(plan.seeds) > 1
    found = {run.key: f"a run to start from, {run.recipe.get('name', '')}" for run in plan.starts}
    for cell in plan.cells:
        seed = f", seed {cell.seed}" if several else ""
        found.setdefault(cell.run.key, f"{cell.point.label}{seed}")
    for call in plan.calls:
        found.setdefault(call.key, call.point.label)
    return found
