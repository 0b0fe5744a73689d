"""Options of the poolers of decoders."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from cse_core.options import PoolerOptions

TEXT = "[X]"
"""What stands in a template for the text."""


def _once(value: str) -> str:
    before, found, after = value.partition(TEXT)
    if not found or TEXT in after or not after.strip():
        raise ValueError(f"a template has {TEXT} once, and words behind it")
    return value


def _twice(value: str) -> str:
    if value.count(TEXT) != 2 or not value.endswith(TEXT):
        raise ValueError(f"a template has {TEXT} twice, and ends in it")
    return value


class OneWordOptions(PoolerOptions):
    """Options of ``one-word``."""

    template: Annotated[str, AfterValidator(_once)] = (
        f'This sentence : "{TEXT}" means in one word:"'
    )
    """[X] is the text, the state of the template's last token its vector. A demonstration may stand
    before it."""


class EchoOptions(PoolerOptions):
    """Options of ``echo``."""

    template: Annotated[str, AfterValidator(_twice)] = f"Document:{TEXT}\nDocument again:{TEXT}"
    """[X] is the text, the second one what is pooled."""
    pooling: Literal["mean", "last"] = "mean"
    """mean: of the second text and what ends the row; last: the row's last token."""
    longest: Annotated[int, Field(ge=1, le=2**20)] | None = None
    """Tokens of a text that are read twice; by default all. Both and the template must fit into
    model.max_length, which cuts the second; where nothing is left of it, the first is pooled."""
    end: bool = True
    """End every row with the tokenizer's end token, if the tokenizer does not."""
