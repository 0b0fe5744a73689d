"""How long a round goes on without a better score, and in which unit that is said."""

from __future__ import annotations

import math
import re
from typing import Annotated

from pydantic import AfterValidator

_FORM = re.compile(r"([1-9][0-9]*) *(steps?|epochs?|evaluations?)")


def _checked(value: int | str) -> int | str:
    if isinstance(value, str) and value.isdecimal():
        value = int(value)
    if isinstance(value, int):
        if value < 1:
            raise ValueError("must be at least 1")
        return value
    if not _FORM.fullmatch(value):
        raise ValueError(
            "must be a number of evaluations, or a number with its unit: 5 evaluations, "
            "20000 steps, 2 epochs"
        )
    return value


Patience = Annotated[int | str, AfterValidator(_checked)]
"""A number of evaluations, or a text with the unit: ``20000 steps``, ``2 epochs``."""


def in_evaluations(patience: int | str, evaluate: int, per_epoch: int) -> int:
    """Return after how many evaluations without a better score a round ends, at least 1.

    Args:
        patience: With its unit, where it has one.
        evaluate: Steps between two evaluations.
        per_epoch: Steps of an epoch.
    """
    if isinstance(patience, int):
        return patience
    found = _FORM.fullmatch(patience)
    if found is None:
        raise ValueError(f"no patience: {patience!r}")
    count, unit = int(found[1]), found[2][0:4]
    if unit == "eval" or not evaluate:
        return count
    steps = count * (per_epoch if unit == "epoc" else 1)
    return max(math.ceil(steps / evaluate), 1)
