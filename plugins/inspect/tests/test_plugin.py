"""The command as its distribution brings it."""

from cse_testkit import CommandSuite


class TestInspect(CommandSuite):
    distribution = "cse-inspect"
    command = "inspect"
