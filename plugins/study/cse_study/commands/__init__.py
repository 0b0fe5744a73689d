"""The commands that this distribution brings."""

from cse_core.records import CommandSpec

STUDY = CommandSpec(
    name="study",
    summary="run the study behind a table of a paper, or your own",
    factory="cse_study.commands.study:study",
)
