"""The kit over the distribution, its parts and its recipes."""

from cse_testkit import part_suites, recipe_suites

globals().update(
    part_suites("cse-whitening", {"pool.whitening": {"variants": ({"dimension": 3},)}})
)
globals().update(recipe_suites("cse-whitening"))
