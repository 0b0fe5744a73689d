"""A finished run at each checkpoint that it kept, and the steps that each stands for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from cse import CseError, StoredRun
from cse_cli.api import Installed, fingerprints

if TYPE_CHECKING:
    from cse import Composition

Place = tuple[int, int]
"""Round, 0 in a run without rounds, and steps of it that were made."""


@dataclass(frozen=True)
class Segment:
    """Steps of a round whose batches are replayed at one checkpoint.

    Attributes:
        place: Of the checkpoint; step 0 of a run without rounds is its start.
        first: The first step, counted from 0.
        stop: The step behind the last one.
    """

    place: Place
    first: int
    stop: int


class Kept(StoredRun):
    """A run that stands at one of its checkpoints.

    Args:
        folder: The run's folder.
        plugins: The installed plugins.
        place: Of the checkpoint, or ``(0, 0)`` for the start.
        precision: Number format to compute in; None is that of the run.
    """

    def __init__(
        self, folder: Path, plugins: Installed, place: Place, precision: str | None = "fp32"
    ) -> None:
        super().__init__(folder, plugins)
        self._place, self._precision = place, precision

    @property
    def checkpoints(self) -> list[Place]:
        """The one at which it stands."""
        return [self._place]

    @cached_property
    def composition(self) -> Composition:
        """What the run trained, on the device and with the threads that it had.

        Draws of a GPU are others than those of a processor, and sums depend on the threads.
        """
        made = StoredRun(self.path, self.plugins).composition
        there = self.settings["run"]
        here: dict[str, Any] = {
            name: there[name] for name in ("device", "threads") if name in there
        }
        if self._precision is not None:
            here["precision"] = self._precision
        return replace(made, train=made.train.model_copy(update=here))


def segments(kept: Sequence[Place], end: Place) -> list[Segment]:
    """Give each step of a run the checkpoint of its round that is nearest.

    Args:
        kept: Places of the checkpoints; the start is one of them in a run without rounds.
        end: Place of the weights that the run ended with: later steps moved nothing. Steps of an
            earlier round count up to its last checkpoint.
    """
    places = sorted(place for place in {*kept} if place <= end)
    made = []
    for number, group in groupby(places, lambda place: place[0]):
        steps = [step for _, step in group]
        between = [-(-(one + two) // 2) for one, two in zip(steps, steps[1:], strict=False)]
        bounds = [0, *between, steps[-1]]
        for step, first, stop in zip(steps, bounds[:-1], bounds[1:], strict=True):
            if stop > first:
                made.append(Segment((number, step), first, stop))
    return made


def check_run(run: StoredRun) -> Place:
    """Return the place of the weights that a run ended with.

    Raises:
        CseError: If it is unfinished, kept no checkpoints, was trained in several processes, kept
            its start, or read other files than are there now.
    """
    result, there = run.result, run.settings["run"]
    name = str(run.path)
    if result is None:
        hint = f"finish it: cse train --resume {quote(name)}"
        raise CseError("the run is unfinished", where="RUN", value=name, hint=hint)
    if int(os.environ.get("WORLD_SIZE") or 1) > 1:
        hint = "start it without torchrun"
        raise CseError("replays in a single process", where="blame", hint=hint)
    if (count := there.get("processes", 1)) > 1:
        what = f"was trained in {count} processes, whose dropout masks one process does not draw"
        raise CseError(what, where="RUN", value=name, hint="train it in one process")
    places = [place for place in run.checkpoints if place > (0, 0)]
    if not places:
        hint = (
            "train it again with --train.keep_checkpoints true: "
            f"cse train --recipe {quote(name)} --out DIR; the last two and the best are kept, "
            "--train.save_steps N says how far apart they are"
        )
        raise CseError("the run kept no checkpoints", where="RUN", value=name, hint=hint)
    end = places[-1]
    if result["chosen_by"] is not None:
        end = (result.get("round") or 0, result["step"])
    if end == (0, 0):
        what = "the run kept the weights of its start, which no row has moved"
        hint = "its rejected weights are in rejected/model; train without train.select_start"
        raise CseError(what, where="RUN", value=name, hint=hint)
    if end not in places:
        what = f"the checkpoint of the chosen step {end[1]} is gone"
        hint = "restore it from a copy, or train again"
        raise CseError(what, where="RUN", value=name, hint=hint)
    _check_files(run)
    return end


def _check_files(run: StoredRun) -> None:
    """Refuse a run whose model or other files have changed; its rows are compared when read."""
    before = run.settings["run"].get("read", {})
    now = fingerprints(run.composition, run.plugins.registry)
    for name, value in before.items():
        # Dev sets choose a checkpoint, and move no weight.
        if not name.startswith("train.") and now.get(name) != value:
            hint = "restore it as it was, or train a new run"
            raise CseError("has changed since the run", where=name, hint=hint)
