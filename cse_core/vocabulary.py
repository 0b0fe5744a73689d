"""The closed vocabulary by which parts say what they provide and require.

A token is a word or ``prefix:name``. A tuple inside a tuple lists alternatives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

WORDS = {
    "pairs": "the pairs of the current round",
    "mask-token": "a mask token in the vocabulary",
    "gradient:inputs": "the gradient of the objective for the inputs of the encoder",
    "vocab:cased": "a vocabulary that keeps capital letters",
}
"""Tokens without a name, and what they mean."""
PREFIXES = {
    "view": "a view of the batch by its name",
    "level": "rows of a level (sentence, segment, input)",
    "positives": "a group of positives by its name",
    "branch": "a branch by its name",
    "column": "a column of the data",
}
"""Prefixes of tokens with a name, and what they mean."""

Need = str | tuple[str, ...]
"""One token, or alternatives of which one is enough."""
Tokens = tuple[Need, ...] | Callable[[Any], tuple[Need, ...]]
"""Tokens of a record: fixed, or a function of the part's options."""

INSTANCE = "{name}"
"""Stands, in a token that a part provides, for the name of its instance."""


def is_known(token: str) -> bool:
    """Tell whether a token is in the vocabulary."""
    prefix, separator, name = token.partition(":")
    return token in WORDS or (bool(separator) and prefix in PREFIXES and bool(name))


def flatten(needs: tuple[Need, ...]) -> Iterator[str]:
    """Yield every token, those of alternatives too."""
    for need in needs:
        if isinstance(need, str):
            yield need
        else:
            yield from need


Role = Literal["anchor", "positive", "identical", "soft_negative", "negative", "aux"]
