"""``cse bench``: how fast this machine trains a composition, and what keeps it from more."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from cse_cli.api import (
    SHOWN,
    Choice,
    choice_flags,
    composition_of,
    echo_err,
    installed,
    progress,
    say_json,
)
from cse_core.errors import CseError

_option = partial(typer.Option, rich_help_panel="Measuring")


@choice_flags()
def bench(
    context: typer.Context,
    choice: Choice,
    precision: Annotated[
        str, _option(metavar="NAME,NAME", help="Measured in turn; train.precision is not used.")
    ] = "fp32,bf16",
    steps: Annotated[
        int, _option(min=1, metavar="N", help="Timed per round; train.max_steps is not used.")
    ] = 5,
    rounds: Annotated[
        int, _option(min=1, metavar="N", help="Rounds; each measures every precision once.")
    ] = 5,
    json: Annotated[
        bool,
        typer.Option("--json", help="Print one JSON object at the end.", rich_help_panel=SHOWN),
    ] = False,
) -> None:
    """Measure training on this machine: speed, memory, and where the time of a step goes.

    It takes the options of cse train, makes the same steps and writes nothing.

    At the end it names the faster precision, and what to type to train in it.
    """
    names = list(dict.fromkeys(name.strip() for name in precision.split(",") if name.strip()))
    hint = "write fp32,bf16"
    if not names:
        raise CseError("needs at least one precision", where="--precision", hint=hint)
    for name in names:
        if name not in ("fp32", "bf16"):
            what = "is not a precision to measure" if name == "auto" else "no such precision"
            raise CseError(what, where="--precision", value=name, hint=hint)
    plugins = installed(context)
    composition = composition_of(choice, plugins)
    with progress(plugins, json=json) as reporter:
        from cse_bench.measure import measure

        try:
            report = measure(
                composition,
                plugins,
                precisions=names,
                steps=steps,
                rounds=rounds,
                reporter=reporter,
            )
        except KeyboardInterrupt:
            reporter.end()
            echo_err("interrupted: no measurement was completed")
            raise typer.Exit(130) from None
    if json:
        say_json(report.to_json())
    else:
        report.show()
