"""The distribution and its command."""

from cse_testkit import PluginSuite


class TestPlugin(PluginSuite):
    distribution = "cse-inspect"
