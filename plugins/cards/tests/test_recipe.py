"""The kit over CARDS's recipe."""

from __future__ import annotations

from pathlib import Path

from cse_testkit import recipe_suites

SUITES = recipe_suites("cse-cards", Path(__file__).parent / "settings")
globals().update(SUITES)


def test_case_switch_is_there_only_where_it_is_seen() -> None:
    """An uncased vocabulary leaves it out, and the plan says so."""
    for encoder, there in (("bert-base-cased", True), ("bert-base", False), ("starter", False)):
        composition = SUITES["TestRecipeCards"]().resolved(encoder)
        assert bool(composition.of("aug")) == there
        assert any("case-switch is left out" in note for note in composition.notes) != there
