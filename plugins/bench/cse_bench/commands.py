"""The command that this distribution brings."""

from cse_core.records import CommandSpec

BENCH = CommandSpec(
    name="bench",
    summary="measure training on this machine",
    factory="cse_bench.cli:bench",
    takes_choice=True,
)
