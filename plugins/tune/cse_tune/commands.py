"""The commands that this distribution brings."""

from cse_core.records import CommandSpec

TUNE = CommandSpec(
    name="tune",
    summary="race mixes of methods on your texts, and judge the winner",
    factory="cse_tune.cli.tune:tune",
    function="cse_tune.tuning:tune",
    example="cse tune notes --model all-MiniLM-L6-v2 --minutes 30",
)
CHOOSE = CommandSpec(
    name="choose",
    summary="compare encoders on your texts, without labels",
    factory="cse_tune.cli.choose:choose",
    function="cse_tune.choosing:choose",
    example="cse choose notes all-MiniLM-L6-v2 all-mpnet-base-v2",
)
