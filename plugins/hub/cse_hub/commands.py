"""The command that this distribution brings."""

from cse_core.records import CommandSpec, Panel

PUSH = CommandSpec(
    name="push",
    summary="share the model of a run on the Hugging Face hub",
    panel=Panel.USE,
    factory="cse_hub.cli:push",
)
