"""What plugins of this repository import: three doors, and what is left behind them."""

from __future__ import annotations

from cse_testkit.doors import behind_the_doors

from docs.packages import ROOT

LEFT: dict[str, str] = {
    "cse_testkit": """
        cse_core.engine
        cse_core.models
        cse_core.training
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
    packages = sorted(path.name for path in ROOT.glob("plugins/*/cse_*") if path.is_dir())
    found = {package: set(behind_the_doors(package)) for package in packages}
    left = {package: set(LEFT.get(package, "").split()) for package in packages}
    new = {package: found[package] - left[package] for package in packages}
    assert {package: names for package, names in new.items() if names} == {}, "use a door"
    gone = {package: left[package] - found[package] for package in packages}
    assert {package: names for package, names in gone.items() if names} == {}, "take it off"
