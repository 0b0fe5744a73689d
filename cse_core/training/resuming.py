"""What a run begins with, and what it goes on with: checkpoint and best weights, both whole."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal

from pydantic import BaseModel, NonNegativeInt
from torch import Tensor

from cse_core.engine.optimizer import GradientSpikeFilter
from cse_core.errors import CseError
from cse_core.runtime.atomic_files import atomic_write, disk_errors, verify_checksums
from cse_core.runtime.model_files import RUN_FILE
from cse_core.training.checkpoint import STATE, TENSORS, Checkpoint
from cse_core.training.run_folder import RunFolder, place_of
from cse_core.training.selection import Best


class RoundsState(BaseModel):
    """Where the rounds of a run are."""

    number: NonNegativeInt
    place: NonNegativeInt
    scores: list[float | None]


class RunState(BaseModel):
    """What the JSON of a run's checkpoint says, and maybe more."""

    step: NonNegativeInt
    round: NonNegativeInt
    parts: dict[str, dict[str, Any]]
    spikes: GradientSpikeFilter
    scaler: dict[str, float]
    steps_before: NonNegativeInt
    scores: dict[Literal["round", "run"], Best]
    rounds: RoundsState
    losses: list[float]


def begin(folder: RunFolder, settings: bytes) -> None:
    """Write ``run.toml``, and before it a checkpoint of nothing but a copy of it."""
    Checkpoint({}, {}, {RUN_FILE: settings}).write(folder.start)
    with disk_errors(folder.recipe):
        atomic_write(folder.recipe, settings.decode())


def last_checkpoint(folder: RunFolder) -> tuple[Checkpoint, list[str]]:
    """Return the newest checkpoint that is whole, and what is wrong with newer ones.

    Where none was written yet it is that of the start, without tensors.

    Raises:
        CseError: If there is none.
    """
    wrong: list[CseError] = []
    for path in reversed(folder.checkpoints() or [folder.start]):
        try:
            found = Checkpoint.read(path)
            if path != folder.start:
                state = RunState.model_validate(found.values)
                if place_of(path) != (state.round, state.step):
                    raise ValueError
            if found.files[RUN_FILE]:
                return found, [error.line() for error in wrong]
        except CseError as error:
            wrong.append(error)
        except (ValueError, LookupError):
            hint = "delete this folder to resume from the one before it"
            wrong.append(CseError("belongs to another run or another version of the toolkit",
                                  where="checkpoint", value=str(path), hint=hint))  # fmt: skip
    if folder.checkpoints():
        raise wrong[0]
    hint = f"start again: cse train --recipe {folder.recipe} --out DIR"
    raise CseError("has no checkpoint", where="--resume", value=str(folder.path), hint=hint)


def write_best(folder: RunFolder, best: Best, weights: Mapping[str, Tensor]) -> None:
    """Write weights as the best of a round so far."""
    Checkpoint(dict(weights), {"step": best.step, **best.scores}).write(folder.best(best.round))


def repair_best(folder: RunFolder, bests: Iterable[Best], names: Collection[str]) -> None:
    """See before the first step that the best weights so far are there and whole.

    Those of a step whose checkpoint is there are written again.

    Args:
        folder: The run's.
        bests: Of the round and of the run.
        names: Of the weights.

    Raises:
        CseError: If they are not whole, and cannot be written again.
    """
    for best in bests:
        path = folder.best(best.round)
        if best.score is None or not (wrong := verify_checksums(path, STATE, TENSORS)):
            continue
        try:
            kept = Checkpoint.read(folder.checkpoint(best.round, best.step)).tensors
        except CseError:
            what = f"the best weights so far are damaged: {wrong}"
            hint = "restore it from a copy, or start a new run"
            raise CseError(what, where=str(path), hint=hint) from None
        write_best(folder, best, {name: kept[name] for name in names})
