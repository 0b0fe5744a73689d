"""The recipes beside whole tables of their settings, and the defaults of the parts."""

from __future__ import annotations

from pathlib import Path

from cse_hicl.options import (
    AveragingOptions,
    EntailmentOptions,
    SameSequenceOptions,
    SegmentsOptions,
)
from cse_testkit import recipe_suites

globals().update(recipe_suites("cse-hicl", Path(__file__).parent / "settings"))


def test_defaults() -> None:
    """The paper's reading of each part, as far as it has one."""
    assert SegmentsOptions() == SegmentsOptions(
        length=32, aggregate="weighted", wrap="segment", join="after-heads"
    )
    assert SameSequenceOptions() == SameSequenceOptions(level="segment", view="positive", most=16)
    assert AveragingOptions() == AveragingOptions(level="segment")
    assert EntailmentOptions() == EntailmentOptions(
        level="segment", sentences="anchor", temperature=0.05, reduction="mean", same_text="mask"
    )
