"""The distribution, its backend and its command."""

from cse_testkit import part_suites

globals().update(part_suites("cse-static"))
