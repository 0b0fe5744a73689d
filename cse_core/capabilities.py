"""Capabilities: what parts provide and require.

A record writes one as a word or as ``kind:name``; a tuple inside a tuple lists alternatives. What
is not of the kinds below is a plugin's own: one part provides it, another requires it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any, Literal, NamedTuple

from cse_core.errors import did_you_mean

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
_OWN = re.compile(r"[a-z][a-z0-9-]*(:\S.*)?")


class Need(NamedTuple):
    """A capability: its kind, and its name where its kind has names.

    Attributes:
        kind: ``"column"``.
        name: ``"score"``; empty for a word alone, such as ``pairs``.
    """

    kind: str
    name: str = ""

    @classmethod
    def parse(cls, text: str) -> Need:
        """Read a capability as a record writes it."""
        kind, _, name = text.partition(":")
        return cls(kind, name)

    def __str__(self) -> str:
        """Write it as a record does."""
        return f"{self.kind}:{self.name}" if self.name else self.kind


def parse_needs(written: tuple[Requirement, ...]) -> tuple[tuple[Need, ...], ...]:
    """Read what a record requires or provides: each as the alternatives that meet it."""
    options = ((item,) if isinstance(item, str) else item for item in written)
    return tuple(tuple(map(Need.parse, item)) for item in options)


def describe_fault(capability: object) -> str | None:
    """Describe what is wrong with a capability as a record writes it; None if nothing is.

    A plugin's own must not look like a misspelt one of these.
    """
    text = capability if isinstance(capability, str) else ""
    kind, _, name = text.partition(":")
    if text in CAPABILITIES or (kind in CAPABILITY_PREFIXES and name):
        return None
    kinds = {*CAPABILITY_PREFIXES, *(form.partition(":")[0] for form in CAPABILITIES)}
    if _OWN.fullmatch(text) and not get_close_matches(kind, kinds, n=1, cutoff=0.8):
        return None
    forms = (*CAPABILITIES, *(f"{prefix}:NAME" for prefix in CAPABILITY_PREFIXES))
    return did_you_mean(str(capability), forms)


Role = Literal["anchor", "positive", "negative", "aux"]
"""What a view is to the anchor; see ``ViewSpec.role``."""
