"""The kit over CARDS's recipe."""

from __future__ import annotations

from pathlib import Path

from cse_testkit import RecipeSuite


class TestCards(RecipeSuite):
    recipe = "cards"
    settings = Path(__file__).parent / "settings" / "cards.toml"

    def test_case_switch_is_there_only_where_it_is_seen(self) -> None:
        """An uncased vocabulary leaves it out, and the plan says so."""
        for encoder, there in (("bert-base-cased", True), ("bert-base", False), ("starter", False)):
            composition = self.resolved(encoder)
            assert bool(composition.of("aug")) == there
            assert any("case-switch is left out" in note for note in composition.notes) != there
