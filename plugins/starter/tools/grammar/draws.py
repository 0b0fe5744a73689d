"""Random choices that come out the same on every machine and Python version.

`random.Random.random` is the one method whose sequence Python promises to keep for a seed, so
every choice is derived from it and no other method of the generator is used.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")


class Draws:
    """Draw from sequences with a generator seeded by a string."""

    def __init__(self, seed: str) -> None:
        """Seed the generator; equal strings give equal draws."""
        self._random = random.Random(seed).random

    def below(self, bound: int) -> int:
        """Return an integer of 0..bound-1."""
        return int(self._random() * bound)

    def between(self, low: int, high: int) -> int:
        """Return an integer of low..high, both included."""
        return low + self.below(high - low + 1)

    def chance(self, probability: float) -> bool:
        """Return True with the probability given."""
        return self._random() < probability

    def one(self, items: Sequence[Item]) -> Item:
        """Return one item."""
        return items[int(self._random() * len(items))]

    def other(self, items: Sequence[Item], than: Item) -> Item:
        """Return one item that is not `than`; the sequence must hold another."""
        return self.one([item for item in items if item != than])

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        """Return the items in random order (Fisher-Yates)."""
        result = list(items)
        for last in range(len(result) - 1, 0, -1):
            swap = self.below(last + 1)
            result[last], result[swap] = result[swap], result[last]
        return result

    def some(self, items: Sequence[Item], count: int) -> list[Item]:
        """Return `count` different items, or all of them if there are fewer."""
        return self.shuffled(items)[:count]
