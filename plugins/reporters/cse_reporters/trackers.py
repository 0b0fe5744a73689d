"""The reporters ``wandb``, ``mlflow`` and ``trackio``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from cse_core.errors import CseError
from cse_reporters.options import MlflowOptions, TrackioOptions, WandbOptions
from cse_reporters.tracker import TrackerReporter

if TYPE_CHECKING:
    from accelerate.tracking import GeneralTracker


class WandbReporter(TrackerReporter):
    """Sends lines to Weights & Biases, or keeps them in ``wandb`` in the run's folder (offline).

    Raises:
        CseError: If it is not installed, or has no key and is not offline.
    """

    name: ClassVar[str] = "wandb"
    package: ClassVar[str] = "wandb"

    def __init__(self, options: WandbOptions) -> None:
        super().__init__(options)
        import wandb

        self._wandb, self._of = wandb, options
        # Without a key wandb would ask for one in the middle of the run.
        online = not options.offline and wandb.setup().settings.mode == "online"
        if online and not wandb.login(prompt=False, verify=False):
            raise CseError(
                "the reporter wandb has no key of Weights & Biases",
                where="train.report",
                hint="run `wandb login`, or write wandb:offline=true and `wandb sync` later",
            )

    def tracker(self, name: str, folder: Path, new: bool) -> GeneralTracker:
        """Return a tracker that writes below the run's folder and leaves the terminal as it is."""
        from accelerate.tracking import WandBTracker

        return WandBTracker(
            self._of.project,
            id=self._tracked.id,
            name=name,
            group=self._of.group,
            resume="allow",
            mode="offline" if self._of.offline else None,
            dir=str(folder),
            reinit="finish_previous",
            settings=self._wandb.Settings(console="off"),
        )


class MlflowReporter(TrackerReporter):
    """Sends lines to MLflow: to ``uri``, or where ``MLFLOW_TRACKING_URI`` says."""

    name: ClassVar[str] = "mlflow"
    package: ClassVar[str] = "mlflow"

    def __init__(self, options: MlflowOptions) -> None:
        super().__init__(options)
        self._of = options

    def tracker(self, name: str, folder: Path, new: bool) -> GeneralTracker:
        """Return a tracker of a new run, or of the one whose id was kept."""
        import mlflow
        from accelerate.tracking import MLflowTracker

        if self._of.uri is not None:
            mlflow.set_tracking_uri(self._of.uri)
        active = mlflow.active_run()
        if active is not None and active.info.run_id in _MADE:  # of a training that was interrupted
            mlflow.end_run("KILLED")
        run = None if new else self._tracked.id
        return MLflowTracker(self._of.project, run_id=run, run_name=name, nested_run=True)

    def opened(self, tracker: GeneralTracker, settings: Mapping[str, Any], new: bool) -> None:
        """Note the id that MLflow gave, too."""
        self._tracked.id = tracker.tracker.info.run_id
        _MADE.add(self._tracked.id)
        super().opened(tracker, settings, new)

    def key(self, name: str) -> str:
        """Return the key with ``_`` for what no metric of MLflow may have: ``recall_5``."""
        return re.sub(r"[^\w\-./: ]", "_", name)


_MADE: set[str] = set()
"""Ids of the runs of MLflow that this process opened."""


class TrackioReporter(TrackerReporter):
    """Sends lines to Trackio: a local database, or a space of the Hugging Face hub."""

    name: ClassVar[str] = "trackio"
    package: ClassVar[str] = "trackio"

    def __init__(self, options: TrackioOptions) -> None:
        super().__init__(options)
        self._of = options

    def tracker(self, name: str, folder: Path, new: bool) -> GeneralTracker:
        """Return a tracker; Trackio finds a run by its name, so the id is a part of it."""
        from accelerate.tracking import TrackioTracker

        return TrackioTracker(
            self._of.project,
            name=f"{name}-{self._tracked.id}",
            group=self._of.group,
            space_id=self._of.space,
            resume="never" if new else "allow",
            config=dict(self._settings),
            embed=False,
        )

    def opened(self, tracker: GeneralTracker, settings: Mapping[str, Any], new: bool) -> None:
        """Leave the settings alone: the tracker was made with them."""

    def known(self, tracker: GeneralTracker) -> int | None:
        """Return the step before the one that Trackio would give next.

        A thread of its own sends what it is given, so a process that is killed leaves some unsent.
        """
        following: int | None = getattr(tracker.tracker, "_next_step", None)
        return None if following is None else following - 1
