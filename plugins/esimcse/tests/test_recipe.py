"""The kit over ESimCSE's recipe, and the defaults of its parts."""

from __future__ import annotations

from pathlib import Path

from cse_esimcse.options import MomentumQueueOptions, WordRepetitionOptions
from cse_testkit import RecipeSuite


class TestEsimcse(RecipeSuite):
    recipe = "esimcse"
    settings = Path(__file__).parent / "settings" / "esimcse.toml"


def test_defaults() -> None:
    assert WordRepetitionOptions() == WordRepetitionOptions(
        rate=0.32, unit="token", count="paper", cap="auto", when="step"
    )
    assert MomentumQueueOptions() == MomentumQueueOptions(size=160, view="anchor", branch="ema")
