"""The kit over CARDS's distribution, parts and recipe."""

from pathlib import Path

from cse_testkit import part_suites, recipe_suites

SUITES = recipe_suites("cse-cards", Path(__file__).parent / "settings")
globals().update(SUITES)
globals().update(
    part_suites(
        "cse-cards",
        {
            "aug.case-switch": {"options": {"rate": 0.3}, "variants": ({"variant": "v1"},)},
            "negatives.retrieved": {
                "options": {"knn": 5},
                "variants": ({"knn": 7, "take": 3, "refresh": "round", "weight": 0.5},),
            },
        },
    )
)


def test_case_switch_is_there_only_where_it_is_seen() -> None:
    """An uncased vocabulary leaves it out, and the plan says so."""
    for encoder, there in (("bert-base-cased", True), ("bert-base", False), ("starter", False)):
        composition = SUITES["TestRecipeCards"]().resolved(encoder)
        assert bool(composition.of("aug")) == there
        assert any("case-switch is left out" in note for note in composition.notes) != there
