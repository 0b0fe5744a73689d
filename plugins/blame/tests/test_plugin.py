"""The distribution and its command."""

from cse_testkit import part_suites

globals().update(part_suites("cse-blame"))
