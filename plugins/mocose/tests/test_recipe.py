"""The kit over MoCoSE's recipes."""

from __future__ import annotations

from pathlib import Path

from cse_testkit import recipe_suites

globals().update(recipe_suites("cse-mocose", Path(__file__).parent / "settings"))
