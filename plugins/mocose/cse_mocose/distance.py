"""How a queue fills, and the traceable distance of its keys (MoCoSE, Figures 2, 3 and 12).

Imports no torch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cse_core.run_info import RunInfo
from cse_core.schedule import Schedule

if TYPE_CHECKING:
    from cse_mocose.options import QueueOptions

BEST_BASE, BEST_LARGE = 14.67, 22.0
"""The paper's best distances, of BERT-base (Figures 2 and 3) and BERT-large (Figure 12)."""
LARGE_HIDDEN = 1024
"""Hidden size from which an encoder counts as large."""
PAPER_DECAY = Schedule("cosine", 0.85, 1.0)
"""Decay of the paper's target branch."""
NEAR = 0.3
"""Share of the best distance that is near enough."""


def lag(decay: float) -> float:
    """Return ``1 / (1 - decay)``, the mean age in updates of the weights in a moving average.

    An average with decay d holds the online weights of i updates ago with share
    ``(1 - d) * d**i``, and ``sum (1 - d) d**i (i + 1) = 1 / (1 - d)`` (appendix A.11).
    """
    return math.inf if decay >= 1 else 1 / (1 - decay)


def mean_age(point: Mapping[str, Any]) -> dict[str, float]:
    """Return the mean age of the weights in a moving average, as a sum and in closed form.

    This is study ``mocose/appendix-A.11``.

    Args:
        point: ``eta``, the decay of the average; ``terms``, how many updates the sum goes back.

    Raises:
        ValueError: If ``eta`` is not from 0 up to 1, or ``terms`` not positive.
    """
    eta, terms = point["eta"], point["terms"]
    if not 0 <= eta < 1 or terms < 1:
        raise ValueError(f"eta is at least 0 and below 1, terms at least 1, not {eta} and {terms}")
    total = math.fsum((1 - eta) * eta**age * (age + 1) for age in range(terms))
    return {"sum": total, "limit": lag(eta)}


def distance(decay: float, held: int, batch: int) -> float:
    """Return ``1 / (1 - decay) + held / batch``: steps from the oldest key to the weights it shows.

    Args:
        decay: Of the branch that encodes the keys.
        held: Keys of the full queue.
        batch: Keys that each step puts in.
    """
    return lag(decay) + held / batch


def resolve_options(options: QueueOptions, facts: RunInfo) -> QueueOptions:
    """Return the options with the size for the wanted distance, and the column of the view.

    Raises:
        ValueError: If no size gives this distance, or the view has no column.
    """
    changes: dict[str, object] = {}
    if options.update == "latest" and options.column is None:
        changes["column"] = _column(options, facts)
    if options.distance is not None:
        changes["size"] = _size(options, options.distance, facts)
    return options.model_copy(update=changes) if changes else options


def notes(options: QueueOptions, facts: RunInfo) -> list[str]:
    """Describe a queue in the plan: how it fills, and the traceable distance."""
    if options.level != "sentence":
        return []
    batch = facts.step_rows or 1
    lines = [in_words(Growth.of(options), batch)]
    decay = decay_of(options, facts)
    if decay is None:
        return lines
    keys = 0 if options.update == "latest" else held_by(options)  # encoded again, none is old
    first, half = decay.at(0, 2), decay.at(1, 2)
    parts = f"1/(1-{first:g})" + (f" + {keys}/{batch}" if keys else "")
    line = f"traceable distance {distance(first, keys, batch):.2f} at the start ({parts})"
    if half != first:
        line += f", {distance(half, keys, batch):.2f} at half the run"
    if options.distance is not None:
        line += f"; size {options.size} was set for distance {options.distance:g}"
    return [*lines, line]


def warnings(options: QueueOptions, facts: RunInfo) -> list[str]:
    """Return a line where the distance at the start is far from the paper's best."""
    decay = decay_of(options, facts)
    if options.level != "sentence" or options.update == "latest" or decay is None:
        return []
    value = distance(decay.at(0, 2), held_by(options), facts.step_rows or 1)
    wanted = BEST_LARGE if (facts.hidden or 0) >= LARGE_HIDDEN else BEST_BASE
    if abs(value - wanted) <= NEAR * wanted:
        return []
    size = "large" if wanted == BEST_LARGE else "base"
    hint = f"distance = {wanted:g} sets the size"
    if lag(decay.at(0, 2)) >= wanted:
        hint = f"give branch {branch_of(options, facts)} a lower decay, such as {PAPER_DECAY}"
    return [
        f"traceable distance {value:.2f} is not within {NEAR:.0%} of {wanted:g}, the paper's best "
        f"for {size} encoders: {hint}"
    ]


def branch_of(options: QueueOptions, facts: RunInfo) -> str:
    """Return the name of the branch that encodes the keys."""
    return options.branch or facts.views.get(options.view, {}).get("branch") or "online"


def decay_of(options: QueueOptions, facts: RunInfo) -> Schedule | None:
    """Return the decay of the branch that encodes the keys, None where it follows nothing."""
    name = branch_of(options, facts)
    if name == "online":
        return Schedule("constant", 0.0, 0.0)
    decay = facts.branches.get(name, {}).get("decay")
    try:
        return None if decay is None else Schedule.parse(decay)
    except ValueError:
        return None  # a curve of a plugin


def _size(options: QueueOptions, wanted: float, facts: RunInfo) -> int:
    from cse_mocose.options import MOST_KEYS

    if options.update == "latest":
        raise ValueError(
            "distance sets no size with update = latest: keys that are encoded again are not old; "
            "give size"
        )
    if options.level != "sentence":
        raise ValueError(
            f"distance counts sentences, and the level is {options.level}: give size instead"
        )
    decay, branch = decay_of(options, facts), branch_of(options, facts)
    if decay is None:
        raise ValueError(f"distance needs a branch with a decay, and {branch} has none: give size")
    least = lag(decay.at(0, 2))
    halves = 2 if options.update == "oldest" else 1
    size = 0 if wanted <= least else round((wanted - least) * (facts.step_rows or 1) / halves)
    if size < 1:
        reached = wanted > lag(PAPER_DECAY.start)
        how = f' (--branch.{branch}.decay "{PAPER_DECAY}")' if reached else ""
        raise ValueError(
            f"distance {wanted:g} is out of reach: the decay {decay.at(0, 2):g} of branch {branch} "
            f"alone makes it {least:.2f}; ask for more, or lower that decay{how}"
        )
    if size > MOST_KEYS:
        raise ValueError(
            f"distance {wanted:g} would take {size:,} keys, but a queue holds at most "
            f"{MOST_KEYS:,}; ask for less"
        )
    return size


def _column(options: QueueOptions, facts: RunInfo) -> str:
    column = facts.views.get(options.view, {}).get("column")
    if column is None:
        raise ValueError(
            f"update = latest encodes the texts of a column again, and a part makes the view "
            f"{options.view}: say which column holds them with column = NAME"
        )
    return column


@dataclass(frozen=True)
class Growth:
    """How many keys a queue draws, holds and shows.

    Keys lie newest first. ``entered`` counts the keys that were ever put in; random rows of the
    first fill do not count.

    The paper says that the queue is initialised with fewer keys and grows: here it begins with
    ``first_fill`` random rows and takes a batch more in each step; beyond ``capacity`` the oldest
    leave, the random rows before all others.

    The public code (``dequeue_and_enqueue``) draws ``capacity`` rows and counts from
    ``first_fill``. While count and first fill together are below the capacity, the loss sees that
    many columns of the front, else all there are. The tensor is cut to the capacity only once the
    count is above it, so it overshoots by up to a capacity before. With a first fill of 0 its first
    keys take the place of the whole tensor, uncut: no random row is ever seen.

    Attributes:
        capacity: Keys that are held when it is full.
        shown: Keys that losses see at most, the oldest; None is all.
    """

    capacity: int
    first_fill: int
    official: bool = False
    shown: int | None = None

    @staticmethod
    def of(options: QueueOptions) -> Growth:
        """Return the growth of a queue with these options."""
        older_half = options.update == "oldest"
        return Growth(
            capacity=held_by(options),
            first_fill=options.first_fill,
            official=options.growth == "official",
            shown=options.size if older_half else None,
        )

    @property
    def drawn(self) -> int:
        """Random rows that it begins with."""
        if self.official and self.first_fill:
            return self.capacity
        return min(self.first_fill, self.capacity)

    def kept(self, held: int, entered: int, new: int) -> int:
        """Return the number of ``held`` keys that stay after a step that put ``new`` ones in."""
        if self.official:
            replaced_all = not self.first_fill and entered == new
            if replaced_all or self.first_fill + entered <= self.capacity:
                return held
        return min(held, self.capacity)

    def window(self, held: int, entered: int) -> tuple[int, int]:
        """Return from where to where losses see ``held`` keys."""
        stop = held
        if self.official and entered + 2 * self.first_fill < self.capacity:
            stop = min(held, entered + 2 * self.first_fill)
        return (0 if self.shown is None else max(0, stop - self.shown)), stop

    def trace(self, batch: int) -> list[tuple[int, int]]:
        """Count the keys, and random rows among them, that losses see in each step.

        Ends with the first step from which on nothing changes.

        Args:
            batch: Keys that each step puts in.
        """
        size, random, entered = self.drawn, self.drawn, 0
        steps: list[tuple[int, int]] = []
        while True:
            start, stop = self.window(size, entered)
            real = size - random
            steps.append((stop - start, stop - max(start, real) if stop > real else 0))
            if size == self.capacity and not random:
                return steps
            entered += batch
            kept = self.kept(size + batch, entered, batch)
            random = max(0, random - (size + batch - kept))
            size = kept


def held_by(options: QueueOptions) -> int:
    """Return the number of keys in a full queue."""
    return 2 * options.size if options.update == "oldest" else options.size


def in_words(growth: Growth, batch: int) -> str:
    """Return the line of the plan on how it fills."""
    steps = growth.trace(batch)
    size, most = steps[-1][0], max(shown for shown, _ in steps)
    full = 1 + max((i for i, (shown, _) in enumerate(steps, 1) if shown != size), default=0)
    line = f"{steps[0][0]} random rows at step 1" if growth.drawn else "empty at step 1"
    if most > size:
        line += f", up to {most} keys"
    line += f", {size} keys from step {full} on"
    if not growth.drawn:
        return line
    real = 1 + max((i for i, (_, random) in enumerate(steps, 1) if random), default=0)
    return f"{line}, none of them random from step {real} on"
