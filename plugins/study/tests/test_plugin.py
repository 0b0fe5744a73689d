"""The command as its distribution brings it."""

from cse_testkit import CommandSuite, PluginSuite


class TestStudy(CommandSuite):
    distribution = "cse-study"
    command = "study"


class TestRuns(CommandSuite):
    distribution = "cse-study"
    command = "runs"


class TestCompare(CommandSuite):
    distribution = "cse-study"
    command = "compare"


class TestPlugin(PluginSuite):
    distribution = "cse-study"


class TestPlot(CommandSuite):
    distribution = "cse-study"
    command = "plot"
