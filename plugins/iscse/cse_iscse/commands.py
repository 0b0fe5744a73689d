"""The command that this distribution brings."""

from cse_core.records import CommandSpec

NEIGHBOURS = CommandSpec(
    name="neighbours",
    summary="show what the buffer of a run holds near its sentences",
    factory="cse_iscse.neighbours:neighbours",
)
