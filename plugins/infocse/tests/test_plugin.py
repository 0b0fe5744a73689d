"""The kit over InfoCSE's distribution and parts."""

from __future__ import annotations

from cse_testkit import AugmenterSuite, MinerSuite, PluginSuite, PoolerSuite

DOCUMENTS = ("document", "title")


class TestPlugin(PluginSuite):
    distribution = "cse-infocse"


class TestSentences(PoolerSuite):
    part = ("pool", "sentences")


class TestSpanMask(AugmenterSuite):
    part = ("aug", "span-mask")


class TestIdc(MinerSuite):
    part = ("positives", "idc")
    columns = DOCUMENTS


class TestIdcKmeans(MinerSuite):
    part = ("positives", "idc-kmeans")
    options = {"clusters": 2}
    columns = DOCUMENTS


class TestIdcLabels(MinerSuite):
    part = ("positives", "idc-labels")
    columns = DOCUMENTS


class TestLabels(MinerSuite):
    part = ("positives", "labels")
    columns = DOCUMENTS


class TestNeighbour(MinerSuite):
    part = ("positives", "neighbour")
    columns = DOCUMENTS


class TestInverseCloze(MinerSuite):
    part = ("positives", "inverse-cloze")
    columns = DOCUMENTS


class TestPrecedingContext(MinerSuite):
    part = ("positives", "preceding-context")
    options = {"context": "mean"}
    columns = DOCUMENTS


class TestSpan(MinerSuite):
    part = ("positives", "span")
    options = {"combine": "mean"}
    columns = DOCUMENTS
