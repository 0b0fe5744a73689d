"""The commands that this distribution brings."""

from cse_core.records import CommandSpec

STUDY = CommandSpec(
    name="study",
    summary="run the study behind a table of a paper, or your own",
    factory="cse_study.commands.study:study",
    function="cse_study.calling:study",
    example="cse study mine.toml --data texts.txt; cse study new writes such a file",
)

NEW = CommandSpec(
    name="study new",
    summary="write the file of a study that compares methods",
    factory="cse_study.commands.new_study:new_study",
    example="cse study new --methods simcse,esimcse --axis lr=1e-5,3e-5,1e-4 --seeds 3",
)

VERIFY = CommandSpec(
    name="verify",
    summary="repeat rows of a published study, and compare them",
    factory="cse_study.commands.verify:verify",
    example="cse verify ROWS.gz --dry-run; cse study --pack writes such a file",
)

RUNS = CommandSpec(
    name="runs",
    summary="list what was run, with its scores",
    factory="cse_study.commands.runs:runs",
)

COMPARE = CommandSpec(
    name="compare",
    summary="put runs side by side: settings that differ, and scores",
    factory="cse_study.commands.runs:compare",
)

PLOT = CommandSpec(
    name="plot", summary="draw charts of runs", factory="cse_study.commands.runs:plot"
)
