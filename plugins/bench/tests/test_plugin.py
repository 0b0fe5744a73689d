"""The command as its distribution brings it."""

from cse_testkit import CommandSuite


class TestBench(CommandSuite):
    distribution = "cse-bench"
    command = "bench"
