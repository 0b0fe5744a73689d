"""Whether a number format holds a step of FGSM. Imports no torch."""

from __future__ import annotations

from cse_core.run_info import RunInfo
from cse_mocose.options import FgsmOptions

ENTRY = 0.04
"""Typical size of an entry of BERT's word embeddings; their standard deviation is 0.042."""
SPACING = {"fp32": 2.0**-23, "bf16": 2.0**-7}
"""Distance from 1 to the next number, by format."""
HELD = 2.0
"""Units in the last place below which a step counts as not held."""


def units(options: FgsmOptions, precision: str) -> float:
    """Return how many units in the last place of an entry a step is, about."""
    size = options.epsilon if options.relative else options.epsilon / ENTRY
    return size / SPACING[precision]


def warnings(options: FgsmOptions, facts: RunInfo) -> list[str]:
    """Return a line where a number format of the run does not hold the step."""
    formats = ("fp32", "bf16") if facts.precision == "auto" else (facts.precision,)
    counts = {name: units(options, name) for name in formats if name in SPACING}
    lost = [f"{_told(count)} in {name}" for name, count in counts.items() if count < HELD]
    if not lost:
        return []
    return [
        f"epsilon {options.epsilon:g} is {' and '.join(lost)}, measured at a word embedding: "
        "little or nothing is left of it, and NAME.VIEW.size in the log tells how much"
    ]


def _told(count: float) -> str:
    if count < 0.1:
        return "nothing"
    return f"about {count:.1g} unit{'' if count < 1.5 else 's'} in the last place"
