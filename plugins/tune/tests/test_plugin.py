"""The distribution and its commands."""

from cse_testkit import part_suites

globals().update(part_suites("cse-tune"))
