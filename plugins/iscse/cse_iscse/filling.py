"""When a buffer is full and smoothing begins, for the plan. Imports no torch."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from cse_core.run_info import RunInfo

if TYPE_CHECKING:
    from cse_iscse.options import SmoothingOptions


def notes(options: SmoothingOptions, facts: RunInfo) -> list[str]:
    """Return the step from which it smooths."""
    batch = facts.step_rows
    if options.level != "sentence" or options.start == "at-once" or not batch:
        return []
    first = first_step(options, facts)
    return [f"smooths from step {first} on, when batches of {batch} have filled {options.size}"]


def warnings(options: SmoothingOptions, facts: RunInfo) -> list[str]:
    """Return a line where it never smooths, and where the batch pushes all else out."""
    batch = facts.step_rows
    if options.level != "sentence" or not batch:
        return []
    lines = []
    if options.start == "full" and facts.steps is not None:
        first = first_step(options, facts)
        if first > facts.steps:
            lines.append(
                f"never smooths: the buffer of {options.size} is full for step {first}, and the "
                f"run has {facts.steps}: lower size, or set start = at-once"
            )
    if batch >= options.size:
        lines.append(
            f"a batch of {batch} leaves nothing of earlier steps in a buffer of {options.size}: "
            f"raise size, at best to more than {2 * batch}"
        )
    return lines


def first_step(options: SmoothingOptions, facts: RunInfo) -> int:
    """Return the first step, counted from 1, that finds the buffer full."""
    batch, rows = facts.step_rows, facts.rows
    epochs, rest = divmod(options.size, rows) if rows else (0, options.size)
    steps = math.ceil(rest / batch) + (epochs * math.ceil(rows / batch) if rows else 0)
    return steps + (1 if _sees_earlier_steps_alone(options) else 0)


def _sees_earlier_steps_alone(options: SmoothingOptions) -> bool:
    from cse_iscse.options import KmeansOptions, KnnOptions

    if isinstance(options, KnnOptions):
        return options.exclude == "batch"
    return isinstance(options, KmeansOptions)
