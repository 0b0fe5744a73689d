"""How a queue fills: the paper's way and the public code's. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass

from cse_mocose.options import QueueOptions


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
        """Return how many of ``held`` keys stay, behind a step that put ``new`` ones in."""
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
        """Return how many keys, and random rows among them, losses see in each step.

        Ends with the first step from which on nothing changes.

        Args:
            batch: Keys that each step puts in.
        """
        held, random, entered = self.drawn, self.drawn, 0
        steps: list[tuple[int, int]] = []
        while True:
            start, stop = self.window(held, entered)
            real = held - random
            steps.append((stop - start, stop - max(start, real) if stop > real else 0))
            if held == self.capacity and not random:
                return steps
            entered += batch
            kept = self.kept(held + batch, entered, batch)
            random = max(0, random - (held + batch - kept))
            held = kept


def held_by(options: QueueOptions) -> int:
    """Return how many keys a full queue holds."""
    return 2 * options.size if options.update == "oldest" else options.size


def in_words(growth: Growth, batch: int) -> str:
    """Return the line of the plan on how it fills."""
    steps = growth.trace(batch)
    size, most = steps[-1][0], max(shown for shown, _ in steps)
    full = 1 + max((i for i, (shown, _) in enumerate(steps) if shown != size), default=-1)
    line = f"{steps[0][0]} random rows at step 0" if growth.drawn else "empty at step 0"
    if most > size:
        line += f", up to {most} keys"
    line += f", {size} keys from step {full} on"
    if not growth.drawn:
        return line
    real = 1 + max((i for i, (_, random) in enumerate(steps) if random), default=-1)
    return f"{line}, none of them random from step {real} on"
