"""The kit over ESimCSE's distribution and parts."""

from __future__ import annotations

from cse_testkit import AugmenterSuite, PluginSuite, StoreSuite


class TestPlugin(PluginSuite):
    distribution = "cse-esimcse"


class TestWordRepetition(AugmenterSuite):
    part = ("aug", "word-repetition")
    variants = (
        {"count": "code", "when": "once", "rate": 0.5},
        {"unit": "word", "rate": 0.5, "cap": None},
    )


class TestMomentumQueue(StoreSuite):
    part = ("negatives", "momentum-queue")
    options = {"size": 10}
    variants = ({"size": 3, "branch": None, "view": "positive"},)
