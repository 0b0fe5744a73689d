"""The command as its distribution brings it."""

from cse_testkit import CommandSuite


class TestStudy(CommandSuite):
    distribution = "cse-study"
    command = "study"
