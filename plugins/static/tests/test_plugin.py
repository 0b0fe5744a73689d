"""The distribution, its backend and its command."""

from cse_testkit import PluginSuite


class TestPlugin(PluginSuite):
    distribution = "cse-static"
