"""The command that this distribution brings."""

from cse_core.records import CommandSpec

BLAME = CommandSpec(
    name="blame",
    summary="list the training rows that moved the similarity of two texts most",
    factory="cse_blame.cli:blame",
    function="cse_blame.blaming:blame",
    example='cse blame runs/mine "a query" "a document" --prove 10',
)
