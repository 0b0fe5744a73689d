"""Reporters that send the lines of ``metrics.jsonl`` to a tracker, through those of accelerate."""

from __future__ import annotations

import json
import secrets
import sys
from abc import abstractmethod
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from cse_core.errors import CseError
from cse_core.runtime.atomic_files import atomic_write
from cse_core.runtime.reporter import Reporter
from cse_reporters.options import TrackerOptions

if TYPE_CHECKING:
    from accelerate.tracking import GeneralTracker

_FROM_ACCELERATE = "1.10"
"""It has a tracker for each of these, which takes what a run that goes on needs."""


@dataclass
class Tracked:
    """What is known of a tracked run; it lies in the run's folder.

    Attributes:
        id: Names the run to the tracker.
        step: Of the last line that was tracked, counted over all rounds.
        steps: How many steps a round makes, by the round's number.
    """

    id: str
    step: int = 0
    steps: dict[str, int] = field(default_factory=dict)


class TrackerReporter(Reporter):
    """Sends each line to a tracker, under the names of ``metrics.jsonl``.

    A run that goes on continues its tracked run. The lines between its checkpoint and where it was
    killed are made again, with the same numbers, and are not tracked twice. Steps of a round count
    from 1; a tracker's steps go on from round to round.

    Attributes:
        name: Of the reporter.
        package: What the tracker is, to Python and to pip.

    Raises:
        CseError: If accelerate or the tracker is not installed.
    """

    name: ClassVar[str]
    package: ClassVar[str]

    def __init__(self, options: TrackerOptions) -> None:
        try:
            for module in ("accelerate.tracking", self.package):
                import_module(module)
        except ImportError as error:
            raise CseError(
                f"the reporter {self.name} needs accelerate and {self.package}: {error}",
                where="train.report",
                hint=f"pip install 'accelerate>={_FROM_ACCELERATE}' {self.package}",
            ) from error
        self._options = options
        self._tracker: GeneralTracker | None = None
        self._tracked = Tracked("")
        self._new = True
        self._folder = Path()
        self._settings: dict[str, Any] = {}
        self._lines: list[dict[str, float]] = []

    @abstractmethod
    def tracker(self, name: str, folder: Path, new: bool) -> GeneralTracker:
        """Return accelerate's tracker, not yet started.

        Args:
            name: Of the tracked run.
            folder: Of the run.
            new: Whether nothing was tracked of this run before.
        """

    def opened(self, tracker: GeneralTracker, settings: Mapping[str, Any], new: bool) -> None:
        """Store the settings of a run that is new, by path, once the tracker has started."""
        if new:
            tracker.store_init_configuration(dict(settings))

    def known(self, tracker: GeneralTracker) -> int | None:
        """Return the last step that a started tracker has of the run; None where it cannot say."""
        return None

    def start(self, folder: Path, settings: Mapping[str, Any]) -> None:
        """Find what was tracked of a run that goes on."""
        self._folder, self._settings = folder, flat(settings)
        file, lines = self._file, folder / "metrics.jsonl"
        text = lines.read_text(encoding="utf-8") if lines.is_file() else ""
        self._lines = [json.loads(line) for line in text.splitlines() if line.endswith("}")]
        # What lies beside no lines is of a run that was replaced.
        self._new = not (file.is_file() and self._lines)
        if self._new:
            self._tracked = Tracked(secrets.token_hex(4))
        else:
            self._tracked = Tracked(**json.loads(file.read_text(encoding="utf-8")))

    def begin(self, round_number: int, steps: int, done: int) -> None:
        """Open the tracked run: each round opens it again."""
        from accelerate import PartialState

        PartialState()  # the trackers' own messages ask it which process this is
        self._tracked.steps[str(round_number)] = steps
        name = self._options.name or self._folder.resolve().name
        # Some print to standard output, where a command's JSON may go.
        with redirect_stdout(sys.stderr):
            tracker = self.tracker(name, self._folder, self._new)
            tracker.start()
            self._tracker = tracker
            self.opened(tracker, self._settings, self._new)
        if (known := self.known(tracker)) is not None:
            self._tracked.step = min(self._tracked.step, known)
        self._new = False
        self._write()
        # A tracker that was killed, or failed, may lack lines from before the checkpoint.
        for line in self._lines:
            if (line.get("round", 0), line["step"]) <= (round_number, done):
                self.line(line)
        self._lines = []

    def line(self, line: Mapping[str, float]) -> None:
        """Track a line that was not tracked before."""
        assert self._tracker is not None
        current = int(line.get("round", 0))
        before = sum(n for number, n in self._tracked.steps.items() if int(number) < current)
        step = before + int(line["step"])
        if step <= self._tracked.step:
            return
        left_out = ("step",) if current else ("step", "round")
        values = {self.key(name): value for name, value in line.items() if name not in left_out}
        with redirect_stdout(sys.stderr):
            self._tracker.log(values, step)
        self._tracked.step = step
        self._write()

    def key(self, name: str) -> str:
        """Return a key of ``metrics.jsonl`` as this tracker can have it."""
        return name

    def end(self) -> None:
        """Close the tracked run."""
        if self._tracker is not None:
            with redirect_stdout(sys.stderr):
                self._tracker.finish()
            self._tracker = None

    @property
    def _file(self) -> Path:
        return self._folder / f"tracked-{self.name}.json"

    def _write(self) -> None:
        atomic_write(self._file, json.dumps(asdict(self._tracked)) + "\n")


def flat(settings: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """Return settings by their paths, ``train.lr``; lists as JSON."""
    found: dict[str, Any] = {}
    for name, value in settings.items():
        where = f"{path}{name}"
        if isinstance(value, Mapping):
            found.update(flat(value, f"{where}."))
        elif value is None or isinstance(value, str | int | float):
            found[where] = value
        else:
            found[where] = json.dumps(value, default=str)
    return found
