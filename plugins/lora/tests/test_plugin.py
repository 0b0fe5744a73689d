"""The kit over the distribution and its adapter."""

from cse_testkit import part_suites

VARIANT = {"targets": ("all-linear",), "rank": 2, "dropout": 0.1, "rslora": True}

globals().update(part_suites("cse-lora", {"adapter.lora": {"variants": (VARIANT,)}}))
