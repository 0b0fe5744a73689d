"""The kit over ESimCSE's recipe, and the defaults of its parts."""

from __future__ import annotations

from pathlib import Path

from cse_esimcse.options import MomentumQueueOptions, WordRepetitionOptions
from cse_testkit import recipe_suites

globals().update(recipe_suites("cse-esimcse", Path(__file__).parent / "settings"))


def test_defaults() -> None:
    assert WordRepetitionOptions() == WordRepetitionOptions(
        rate=0.32, unit="token", count="paper", cap="auto", when="step"
    )
    assert MomentumQueueOptions() == MomentumQueueOptions(size=160, view="anchor", branch="ema")
