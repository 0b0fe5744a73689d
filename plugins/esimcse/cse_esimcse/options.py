"""Options of ESimCSE's parts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from cse_core.options import AugmenterOptions, StoreOptions


class WordRepetitionOptions(AugmenterOptions):
    """Options of ``word-repetition``."""

    rate: Annotated[float, Field(gt=0, le=1)] = 0.32
    """Largest share of a row's units that are repeated."""
    unit: Literal["token", "word"] = "token"
    """token: single tokens (the paper's sub-words); word: whole words, but never a row's last one
    (the code's word mode)."""
    count: Literal["paper", "code"] = "paper"
    """How many: paper is 0 to max(2, rate * N) of N content units, code 0 to rate * L - 1 of all L
    tokens of the row, special tokens counted; shares are rounded down."""
    cap: Annotated[int, Field(ge=1)] | Literal["auto"] | None = "auto"
    """Upper bound (exclusive) on a row's repetitions; auto: 10 with count = code, as in that code,
    no limit with count = paper; none: no limit."""
    when: Literal["step", "once"] = "step"
    """step: drawn again in each step; once: always the same repetitions for a row, as in the
    code."""


class MomentumQueueOptions(StoreOptions):
    """Options of ``momentum-queue``."""

    size: Annotated[int, Field(ge=1, le=2**20)] = 160
    """Number of vectors; the oldest are dropped first."""
    view: str = "anchor"
    """View whose vectors it keeps: anchor is the text without repetitions."""
    branch: str | None = "ema"
    """Branch that encodes them; none: the view's own."""
