"""The command as its distribution brings it."""

from cse_testkit import CommandSuite


class TestPush(CommandSuite):
    distribution = "cse-hub"
    command = "push"
