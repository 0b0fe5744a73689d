"""The command that this distribution brings."""

from cse_core.records import CommandSpec

TRANSLATE = CommandSpec(
    name="data translate",
    summary="translate a column of texts, for the column fraternal",
    factory="cse_translate.cli:translate",
)
