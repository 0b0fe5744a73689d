"""The command as its distribution brings it."""

from cse_testkit import CommandSuite


class TestTranslate(CommandSuite):
    distribution = "cse-translate"
    command = "data translate"
