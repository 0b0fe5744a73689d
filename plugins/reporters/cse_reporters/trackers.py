"""The reporters ``wandb``, ``mlflow`` and ``trackio``, through accelerate's trackers."""

from __future__ import annotations

import json
import re
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
from cse_core.files import atomic_write
from cse_core.reporter import Reporter
from cse_reporters.files import metrics
from cse_reporters.options import MlflowOptions, TrackerOptions, TrackioOptions, WandbOptions

if TYPE_CHECKING:
    from accelerate.tracking import GeneralTracker

_ACCELERATE = "accelerate>=1.10"
"""It has a tracker for each of these, which takes what a run that continues needs."""


@dataclass
class Tracked:
    """What is known of a tracked run; it is kept in the run's folder.

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

    A run that continues continues its tracked run. Lines that were tracked before are not tracked
    twice, and those that the tracker lacks are sent again. Steps of a round count from 1; a
    tracker's steps go on from round to round.

    Attributes:
        package: What the tracker is, to Python and to pip; the reporter has the same name.

    Raises:
        CseError: If accelerate or the tracker is not installed.
    """

    package: ClassVar[str]

    def __init__(self, options: TrackerOptions) -> None:
        try:
            for module in ("accelerate.tracking", self.package):
                import_module(module)
        except ImportError as error:
            raise CseError(
                f"the reporter {self.package} needs accelerate and {self.package}: {error}",
                where="train.report",
                hint=f"pip install '{_ACCELERATE}' {self.package}",
            ) from error
        self._options = options
        self._tracker: GeneralTracker | None = None
        self._tracked = Tracked("")
        self._new = True
        self._folder = Path()
        self._settings: dict[str, Any] = {}
        self._lines: list[dict[str, float]] = []

    @abstractmethod
    def tracker(self, name: str, new: bool) -> GeneralTracker:
        """Return accelerate's tracker, not yet started.

        Args:
            name: Of the tracked run.
            new: Whether nothing was tracked of this run before.
        """

    def opened(self, tracker: GeneralTracker, new: bool) -> None:
        """Store the settings of a run that is new, by path, once the tracker has started."""
        if new:
            tracker.store_init_configuration(self._settings)

    def start(self, folder: Path, settings: Mapping[str, Any]) -> None:
        """Find what was tracked of a run that continues."""
        self._folder, self._settings, self._lines = folder, flat(settings), metrics(folder)
        # A file without lines beside it is of a run that was replaced.
        self._new = not (self._file.is_file() and self._lines)
        if self._new:
            self._tracked = Tracked(secrets.token_hex(4))
        else:
            self._tracked = Tracked(**json.loads(self._file.read_text(encoding="utf-8")))

    def begin(self, round_number: int, steps: int, done: int) -> None:
        """Open the tracked run: each round opens it again."""
        from accelerate import PartialState

        PartialState()  # the trackers' own messages ask it which process this is
        self._tracked.steps[str(round_number)] = steps
        name = self._options.name or self._folder.resolve().name
        # Some print to standard output, where a command's JSON may go.
        with redirect_stdout(sys.stderr):
            self._tracker = self.tracker(name, self._new)
            self._tracker.start()
            self.opened(self._tracker, self._new)
        self._new = False
        self._write()
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
        return self._folder / f"tracked-{self.package}.json"

    def _write(self) -> None:
        atomic_write(self._file, json.dumps(asdict(self._tracked)) + "\n")


class WandbReporter(TrackerReporter):
    """Sends lines to Weights & Biases, or keeps them in ``wandb`` in the run's folder (offline).

    Raises:
        CseError: If it is not installed, or has no key and is not offline.
    """

    package: ClassVar[str] = "wandb"
    _options: WandbOptions

    def __init__(self, options: WandbOptions) -> None:
        super().__init__(options)
        import wandb

        # Without a key wandb would ask for one in the middle of the run.
        online = not options.offline and wandb.setup().settings.mode == "online"
        if online and not wandb.login(prompt=False, verify=False):
            raise CseError(
                "the reporter wandb has no key of Weights & Biases",
                where="train.report",
                hint="run `wandb login`, or write wandb:offline=true and `wandb sync` later",
            )

    def tracker(self, name: str, new: bool) -> GeneralTracker:
        """Return a tracker that writes below the run's folder and leaves the terminal as it is."""
        import wandb
        from accelerate.tracking import WandBTracker

        return WandBTracker(
            self._options.project,
            id=self._tracked.id,
            name=name,
            group=self._options.group,
            resume="allow",
            mode="offline" if self._options.offline else None,
            dir=str(self._folder),
            reinit="finish_previous",
            settings=wandb.Settings(console="off"),
        )


class MlflowReporter(TrackerReporter):
    """Sends lines to MLflow: to ``uri``, or where ``MLFLOW_TRACKING_URI`` says."""

    package: ClassVar[str] = "mlflow"
    _options: MlflowOptions

    def tracker(self, name: str, new: bool) -> GeneralTracker:
        """Return a tracker of a new run, or of the one whose id was kept."""
        import mlflow
        from accelerate.tracking import MLflowTracker

        if self._options.uri is not None:
            mlflow.set_tracking_uri(self._options.uri)
        run = None if new else self._tracked.id
        return MLflowTracker(self._options.project, run_id=run, run_name=name, nested_run=True)

    def opened(self, tracker: GeneralTracker, new: bool) -> None:
        """Note the id that MLflow gave, too."""
        self._tracked.id = tracker.tracker.info.run_id
        super().opened(tracker, new)

    def key(self, name: str) -> str:
        """Return the key with ``_`` for what no metric of MLflow may have: ``recall_5``."""
        return re.sub(r"[^\w\-./: ]", "_", name)


class TrackioReporter(TrackerReporter):
    """Sends lines to Trackio: a local database, or a space of the Hugging Face hub."""

    package: ClassVar[str] = "trackio"
    _options: TrackioOptions

    def tracker(self, name: str, new: bool) -> GeneralTracker:
        """Return a tracker; Trackio finds a run by its name, so the id is a part of it."""
        from accelerate.tracking import TrackioTracker

        return TrackioTracker(
            self._options.project,
            name=f"{name}-{self._tracked.id}",
            group=self._options.group,
            space_id=self._options.space,
            resume="never" if new else "allow",
            config=dict(self._settings),
            embed=False,
        )

    def opened(self, tracker: GeneralTracker, new: bool) -> None:
        """Leave the settings alone: the tracker was made with them."""


def flat(settings: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """Return settings by their paths, ``train.lr``; lists as JSON."""
    result: dict[str, Any] = {}
    for name, value in settings.items():
        where = f"{path}{name}"
        if isinstance(value, Mapping):
            result.update(flat(value, f"{where}."))
        elif value is None or isinstance(value, str | int | float):
            result[where] = value
        else:
            result[where] = json.dumps(value, default=str)
    return result
