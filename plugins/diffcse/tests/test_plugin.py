"""Every promise that the kit asks of the distribution and its parts."""

from cse_testkit import part_suites

VARIANTS = (
    {"fill": "sample", "replaced": "masked", "places": "content"},
    {"second": None},
)
globals().update(part_suites("cse-diffcse", {"loss.replaced-tokens": {"variants": VARIANTS}}))
