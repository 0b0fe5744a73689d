"""The command that this distribution brings."""

from cse_core.records import CommandSpec

INSPECT = CommandSpec(
    name="inspect",
    summary="show a batch as the losses see it",
    factory="cse_inspect.cli:inspect",
    takes_choice=True,
)
