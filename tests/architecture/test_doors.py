"""What plugins of this repository import: three doors, and what is left behind them."""

from __future__ import annotations

from docs.packages import CONTRACT, ROOT, modules

DOORS = {"cse", "cse_cli.api", "cse_core", *(f"cse_core.{name}" for name in CONTRACT)}
LEFT: dict[str, str] = {
    "cse_testkit": """
        cse_cli.options.descriptions
        cse_cli.plugins.installed_commands
        cse_cli.plugins.reporters
        cse_cli.terminal.progress
        cse_core.data
        cse_core.encoders.dropout
        cse_core.encoders.encoder
        cse_core.encoders.pretrained
        cse_core.engine.assembly
        cse_core.engine.negatives
        cse_core.engine.objective
        cse_core.engine.part_calls
        cse_core.models.part_factory
        cse_core.recipes.compose
        cse_core.recipes.composition
        cse_core.recipes.model_facts
        cse_core.registry.manager
        cse_core.registry.plugin_info
        cse_core.registry.record_checks
        cse_core.registry.registry
        cse_core.tokenization.tokenizer
        cse_core.tokenization.training_rows
        cse_core.training.checkpoint
        cse_core.training.loop
        cse_core.training.rounds
        cse_core.training.run_folder
    """,
}
"""Modules behind the doors that a plugin still imports; what goes never comes back."""


def test_plugins_import_the_doors_and_what_is_left() -> None:
    found: dict[str, set[str]] = {}
    for path in ROOT.glob("plugins/*/cse_*"):
        own = [module for module in modules().values() if module.package == path.name]
        behind = {name for module in own for name in module.imports if name not in DOORS}
        behind = {name for name in behind if name.split(".")[0] in {"cse", "cse_cli", "cse_core"}}
        if behind:
            found[path.name] = behind
    left = {plugin: set(names.split()) for plugin, names in LEFT.items()}
    new = {plugin: names - left.get(plugin, set()) for plugin, names in found.items()}
    assert {plugin: names for plugin, names in new.items() if names} == {}, "use a door"
    gone = {plugin: names - found.get(plugin, set()) for plugin, names in left.items()}
    assert {plugin: names for plugin, names in gone.items() if names} == {}, "take it off the table"
