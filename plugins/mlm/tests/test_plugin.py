"""Every promise that the kit asks of the distribution and its parts."""

from cse_testkit import part_suites

VARIANTS = {
    "aug.mask": ({"whole_words": True},),
    "loss.auxiliary-mlm": ({"second": None, "whole_words": True}, {"lower": 1, "layers": 1}),
}
settings = {path: {"variants": each} for path, each in VARIANTS.items()}
globals().update(part_suites("cse-mlm", settings))
