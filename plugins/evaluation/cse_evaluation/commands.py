"""The command that this distribution brings."""

from cse_core.records import CommandSpec, Panel

EVAL = CommandSpec(
    name="eval",
    summary="score models on graded pairs, labelled texts and retrieval",
    panel=Panel.USE,
    factory="cse_evaluation.cli.evaluate:evaluate",
    function="cse_evaluation.cli.scoring:evaluate",
)
