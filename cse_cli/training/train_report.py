"""What ``cse train`` says of a run before and after it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from cse_cli.terminal.console import echo, echo_err, say_json, warn

if TYPE_CHECKING:
    from cse_cli.options.flags import Choice
    from cse_cli.plugins.installed import Installed
    from cse_cli.training.plan_scores import PlannedRun
    from cse_core.recipes.composition import Composition
    from cse_core.training.trainer import Outcome


def plan_json(
    composition: Composition, choice: Choice, plugins: Installed, run: PlannedRun
) -> dict[str, Any]:
    """Return the plan as data that JSON can hold."""
    from cse_cli.training.plan_text import plan_dict
    from cse_cli.training.resolving import changed_settings

    changed = changed_settings(composition, choice, plugins)
    return {**plan_dict(composition), **run.as_dict(composition), "changed": changed}


def plan_text(
    composition: Composition, choice: Choice, plugins: Installed, run: PlannedRun
) -> list[str]:
    """Return the plan as lines of plain text."""
    from cse_cli.training.plan_text import plan_lines
    from cse_cli.training.resolving import changed_settings

    changed = [f"  {line}" for line in changed_settings(composition, choice, plugins)]
    heading = ["settings that are not the defaults:"] if changed else []
    return [*plan_lines(composition, run.lines(composition)), *heading, *changed]


def show_plan(
    composition: Composition, choice: Choice, plugins: Installed, run: PlannedRun, *, json: bool
) -> None:
    """Print the plan on stdout."""
    if json:
        say_json(plan_json(composition, choice, plugins, run))
        return
    for line in plan_text(composition, choice, plugins, run):
        echo(line)


def show_in_short(composition: Composition) -> None:
    """Print parts, passes and settings in a few lines on stderr."""
    from cse_cli.training.plan_text import format_steps

    train = composition.train
    parts = ", ".join(
        part.path for part in composition.parts if part.kind != "branch" or part.use != "online"
    )
    echo_err(f"recipe {composition.recipe or 'default'}: {parts}")
    passes = "; ".join(
        f"{each.branch}: {' + '.join(each.views)}" + ("" if each.gradient else " (no gradient)")
        for each in composition.passes
    )
    echo_err(f"each step encodes {passes}")
    echo_err(
        f"model {composition.model.name}, batches of {train.batch_size}, "
        f"learning rate {train.lr:g}{format_steps(composition)}, seed {train.seed}"
    )
    for warning in composition.warnings:
        warn(warning)


def show_outcome(outcome: Outcome, folder: Path, plugins: Installed) -> None:
    """Print what came of the run, and what to type next."""
    echo(f"trained {outcome.steps:,} steps in {_duration(outcome.seconds)}")
    if outcome.chosen_by is not None and outcome.score is not None:
        echo(f"chosen: step {outcome.step:,} by {outcome.chosen_by} = {outcome.score:.2f}")
    else:
        echo(f"kept: step {outcome.step:,}, the last")
    echo(f"model: {outcome.model}")
    echo("next:")
    if "eval" in plugins.commands.usable:
        from cse_cli.plugins.data_folder import data_folder

        there = plugins.locate("sts", data_folder()[0]).there
        echo(f"  cse eval {folder}{' --suite sts' if there else ''}")
    echo(f"  cse encode {folder} --text 'a sentence'")


def outcome_json(outcome: Outcome, folder: Path, reporter: Any) -> dict[str, Any]:
    """Return what came of the run, with everything that was printed meanwhile."""
    return {
        "run": str(folder),
        "model": str(outcome.model),
        "steps": outcome.steps,
        "step": outcome.step,
        "round": outcome.round,
        "chosen_by": outcome.chosen_by,
        "score": outcome.score,
        "scores": outcome.scores,
        "seconds": round(outcome.seconds, 1),
        "messages": list(reporter.messages),
        "warnings": list(reporter.warnings),
    }


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"
