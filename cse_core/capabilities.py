"""Capabilities: what parts provide and require.

A capability is a word or ``prefix:name``. A tuple inside a tuple lists alternatives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

CAPABILITIES = {
    "pairs": "pairs of texts, of a column that a view reads or of a round",
    "mask-token": "a mask token in the vocabulary",
    "end-token": "a token in the vocabulary that ends a text",
    "vocab:cased": "a vocabulary that keeps capital letters",
}
"""Capabilities without a name, and what they mean."""
CAPABILITY_PREFIXES = {
    "view": "a view of the batch by its name",
    "level": "rows of a level (sentence, segment, input)",
    "positives": "a group of positives by its name",
    "branch": "a branch by its name",
    "column": "a column of the data",
    "labels": "labels on the tokens of a view",
    "precision": "a number format of the encoder; `train.precision = auto` takes it",
}
"""Prefixes of capabilities with a name, and what they mean."""

Requirement = str | tuple[str, ...]
"""One capability, or alternatives of which one is enough."""
Capabilities = tuple[Requirement, ...] | Callable[[Any], tuple[Requirement, ...]]
"""Capabilities of a record: fixed, or a function of the part's options."""

INSTANCE = "{name}"
"""Stands, in a capability that a part provides, for the name of its instance."""


def is_known(capability: str) -> bool:
    """Return whether a capability is known."""
    prefix, separator, name = capability.partition(":")
    return capability in CAPABILITIES or (
        bool(separator) and prefix in CAPABILITY_PREFIXES and bool(name)
    )


def flatten(needs: tuple[Requirement, ...]) -> Iterator[str]:
    """Yield every capability, those of alternatives too."""
    for need in needs:
        if isinstance(need, str):
            yield need
        else:
            yield from need


Role = Literal["anchor", "positive", "negative", "aux"]
"""What a view is to the anchor; see ``ViewSpec.role``."""
