"""The kit over CARDS's distribution and parts."""

from __future__ import annotations

from cse_testkit import AugmenterSuite, PluginSuite, StoreSuite


class TestPlugin(PluginSuite):
    distribution = "cse-cards"


class TestCaseSwitch(AugmenterSuite):
    part = ("aug", "case-switch")
    options = {"rate": 0.3}
    variants = ({"variant": "v1"},)


class TestRetrieved(StoreSuite):
    part = ("negatives", "retrieved")
    options = {"knn": 5}
    variants = ({"knn": 7, "take": 3, "refresh": "round", "weight": 0.5},)
