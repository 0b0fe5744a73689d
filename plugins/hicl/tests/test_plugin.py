"""The kit over HiCL's distribution and parts."""

from __future__ import annotations

from cse_testkit import LossSuite, MinerSuite, PluginSuite, PoolerSuite, StoreSuite

SHORT = {"length": 4}
"""Segments of this length, so that the kit's short texts have several."""


class TestPlugin(PluginSuite):
    distribution = "cse-hicl"


class TestSegments(PoolerSuite):
    part = ("pool", "segments")
    options = SHORT
    variants = ({**SHORT, "wrap": "sentence", "aggregate": "mean", "join": "before-heads"},)


class TestSameSequence(MinerSuite):
    part = ("positives", "same-sequence")
    sets = ("pool.segments.length=4",)


class TestAveraging(StoreSuite):
    part = ("negatives", "averaging")
    sets = ("pool.segments.length=4",)


class TestEntailment(LossSuite):
    part = ("loss", "entailment")
    sets = ("pool.segments.length=4",)
