"""The kit over the distribution and its adapter."""

from __future__ import annotations

from cse_testkit import AdapterSuite, PluginSuite


class TestPlugin(PluginSuite):
    distribution = "cse-lora"


class TestLora(AdapterSuite):
    part = ("adapter", "lora")
    variants = ({"targets": ("all-linear",), "rank": 2, "dropout": 0.1, "rslora": True},)
