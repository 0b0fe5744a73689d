"""The commands that this distribution brings."""

from cse_core.records import CommandSpec, Panel

CHECK_PLUGIN = CommandSpec(
    name="check-plugin",
    summary="check that an installed plugin keeps its contract",
    panel=Panel.PLUGINS,
    factory="cse_testkit.check_plugin:check_plugin",
)
NEW_PLUGIN = CommandSpec(
    name="new-plugin",
    summary="write the package of a plugin, with its tests",
    panel=Panel.PLUGINS,
    factory="cse_testkit.new_plugin:new_plugin",
)
