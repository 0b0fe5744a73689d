"""Whether a number format holds a step of FGSM. Imports no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cse_core.run_info import RunInfo

if TYPE_CHECKING:
    from cse_mocose.options import FgsmOptions

ENTRY = 0.04
"""Typical size of an entry of BERT's word embeddings; their standard deviation is 0.042."""
SPACING = {"fp32": 2.0**-23, "bf16": 2.0**-7}
"""Distance from 1 to the next number, by format."""
HELD = 2.0
"""Units in the last place below which a step counts as not held."""


def units(options: FgsmOptions, precision: str) -> float:
    """Estimate the size of a step in units in the last place of an entry."""
    size = options.epsilon if options.relative else options.epsilon / ENTRY
    return size / SPACING[precision]


def requires(options: FgsmOptions) -> tuple[str, ...]:
    """Return fp32 for a step that bf16 does not hold."""
    return ("precision:fp32",) if units(options, "bf16") < HELD else ()


def warnings(options: FgsmOptions, facts: RunInfo) -> list[str]:
    """Return a line where a number format of the run does not hold the step."""
    count = units(options, facts.precision) if facts.precision in SPACING else HELD
    if count >= HELD:
        return []
    return [
        f"epsilon {options.epsilon:g} is {_told(count)} in {facts.precision}, measured at a word "
        "embedding: most of the perturbation is lost to rounding; fgsm.VIEW.size in metrics.jsonl "
        "shows what remains"
    ]


def _told(count: float) -> str:
    if count < 0.1:
        return "nothing"
    return f"about {count:.1g} unit{'' if count < 1.5 else 's'} in the last place"
