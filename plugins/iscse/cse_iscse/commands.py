"""The command that this distribution brings."""

from cse_core.records import CommandSpec, Panel

NEIGHBOURS = CommandSpec(
    name="iscse neighbours",
    summary="show what the buffer of a run holds near its sentences",
    panel=Panel.PAPERS,
    factory="cse_iscse.neighbours:neighbours",
)
