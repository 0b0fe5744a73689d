"""The command that this distribution brings."""

from cse_core.records import CommandSpec

EVAL = CommandSpec(
    name="eval",
    summary="score models on graded pairs, labelled texts and retrieval",
    panel="Train and use a model",
    factory="cse_evaluation.cli.evaluate:evaluate",
    function="cse_evaluation.cli.scoring:evaluate",
)
