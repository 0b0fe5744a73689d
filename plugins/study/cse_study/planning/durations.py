"""How long what is left of a plan will take, by the runs that are there."""

from __future__ import annotations

from dataclasses import dataclass

from cse_core.training.run_folder import RESULT
from cse_study.execution.folder import StudyFolder, read_json
from cse_study.execution.jobs import Scoring
from cse_study.execution.running import Work
from cse_study.planning.plan import Plan


@dataclass(frozen=True)
class State:
    """What is there of a plan.

    Attributes:
        done: Keys of what is finished.
        begun: Keys of runs that will be resumed.
        new: Keys of the others.
        seconds: How long begun and new ones take in one process, as far as runs of this folder
            tell it; None where none does.
    """

    done: tuple[str, ...]
    begun: tuple[str, ...]
    new: tuple[str, ...]
    seconds: float | None


def state_of(plan: Plan, work: Work, folder: StudyFolder, scoring: Scoring | None) -> State:
    """Return what is there of a plan, and an estimate of the rest."""
    done = [key for key, job in work.jobs.items() if job.done]
    left = [key for key in work.jobs if key not in done]
    begun = [key for key in left if key in plan.runs and folder.begun(key)]
    new = [key for key in left if key not in begun]
    return State(tuple(done), tuple(begun), tuple(new), _seconds(plan, left, folder, scoring))


def _seconds(
    plan: Plan, left: list[str], folder: StudyFolder, scoring: Scoring | None
) -> float | None:
    per_step: dict[str, list[float]] = {}
    scored: list[float] = []
    for key, run in plan.runs.items():
        result = read_json(folder.run(key) / RESULT)
        steps = result.get("steps")
        if isinstance(steps, int) and steps and isinstance(result.get("seconds"), int | float):
            per_step.setdefault(str(run.recipe.get("name")), []).append(result["seconds"] / steps)
        if scoring is not None:
            about = read_json(folder.scores(key, scoring.key))
            scored += [about["seconds"]] if isinstance(about.get("seconds"), int | float) else []
    every = [each for values in per_step.values() for each in values]
    if not every:
        return None
    scoring_takes = sum(scored) / len(scored) if scored else 0.0
    total, scored_keys = 0.0, plan.scored
    for key in left:
        if key not in plan.runs:
            continue
        planned = plan.runs[key]
        known = per_step.get(str(planned.recipe.get("name")), every)
        steps_left = (planned.steps or 0) - (folder.step(key) or 0)
        if not folder.trained(key):
            total += max(0, steps_left) * sum(known) / len(known)
        if key in scored_keys:
            total += scoring_takes
    return total


def in_words(seconds: float) -> str:
    """Return a duration as people say it."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
