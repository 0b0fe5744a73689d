"""The kit over MoCoSE's recipe."""

from __future__ import annotations

from pathlib import Path

from cse_testkit import RecipeSuite


class TestMocose(RecipeSuite):
    recipe = "mocose"
    settings = Path(__file__).parent / "settings" / "mocose.toml"
