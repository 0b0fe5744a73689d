"""The kit over the distribution and its store."""

from cse_testkit import StoreSuite, part_suites

globals().update(
    part_suites(
        "cse-guide",
        {
            "negatives.guide": {
                "options": {"margin": 0.2},
                "variants": (
                    {"margin": 0.2, "strategy": "relative"},
                    {"margin": 0.1, "stored": True},
                ),
            }
        },
    )
)


class TestGuideOfTwoDropouts(StoreSuite):
    part = ("negatives", "guide")
    options = {"margin": 0.1}
    sets = ("branch.frozen.mode=train",)
