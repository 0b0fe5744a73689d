"""How the weight of the smoothed loss rises."""

from __future__ import annotations

import math


def quarter_cosine(start: float, end: float, done: float) -> float:
    """Return IS-CSE's alpha, Eq. 8, where a share ``done`` of the round is done.

    It is a quarter period of a cosine over the first half of the round, and ``end`` from there on.

    Raises:
        ValueError: If ``start`` is above ``end``: the published formula then falls below ``end``.
    """
    if start > end:
        raise ValueError("quarter-cosine(a,b) needs a <= b: past b the published formula falls")
    return end + (start - end) * max(math.cos(math.pi * done), 0.0)
