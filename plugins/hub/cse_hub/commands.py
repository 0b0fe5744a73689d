"""The command that this distribution brings."""

from cse_core.records import CommandSpec

PUSH = CommandSpec(
    name="push",
    summary="share the model of a run on the Hugging Face hub",
    panel="Train and use a model",
    factory="cse_hub.cli:push",
)
