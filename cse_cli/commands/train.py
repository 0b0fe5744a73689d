"""``cse train``: compose parts into a run, show its plan, train it."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from cse_cli.models.processes import check_launch, is_first
from cse_cli.options.completion import complete_reporter
from cse_cli.options.flags import Choice
from cse_cli.plugins.installed import Installed, installed
from cse_cli.terminal.console import echo, echo_err, say_json, say_outline
from cse_cli.training.choosing import SHOWN, choice_flags, option
from cse_cli.training.stored_run import StoredRun
from cse_cli.training.train_checks import check_auto, check_same, planned_run, refuse_beside_resume
from cse_cli.training.train_checks import save_recipe as write_recipe

if TYPE_CHECKING:
    from cse_engine.compose.composition import Composition


@choice_flags(dev=True)
def train(
    context: typer.Context,
    choice: Choice,
    report: Annotated[
        list[str] | None,
        option(
            "--report",
            metavar="NAME",
            help="Reporter, such as csv; not the recipe's.",
            autocompletion=complete_reporter,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        option("--out", "-o", metavar="DIR", help="Folder; by default runs/RECIPE-TIME."),
    ] = None,
    force: Annotated[
        bool, option("--force", help="Overwrite the run in the folder of --out.")
    ] = False,
    resume: Annotated[
        Path | None, option(metavar="DIR|auto", help="Resume a run; auto: --out, or start it.")
    ] = None,
    save_recipe: Annotated[
        Path | None, option(metavar="FILE", help="Write the recipe to a TOML file.")
    ] = None,
    dry_run: Annotated[
        bool, option("--dry-run", help="Check and show the plan only.", panel=SHOWN)
    ] = False,
    check_parts: Annotated[
        bool, option("--check-parts", help="Check what parts return in every step.")
    ] = False,
    quiet: Annotated[
        bool, option("--quiet", "-q", help="Print only errors and the folder.", panel=SHOWN)
    ] = False,
    json: Annotated[
        bool, option("--json", help="Print one JSON object at the end.", panel=SHOWN)
    ] = False,
) -> None:
    """Train a sentence encoder with a recipe or with parts.

    NAME replaces the recipe's parts of a kind, +NAME adds one, ~NAME removes one.
    --help-all lists every option, --help loss.infonce those of one part.
    """
    check_launch()  # what contradicts itself is refused before anything is read
    if report:
        choice.sets.insert(0, f"train.report={dumps(report)}")
    plugins = installed(context)
    auto = resume == Path("auto")
    if auto:
        check_auto(out, force)
    if resume is not None and not auto:
        refuse_beside_resume(choice, out, save_recipe, dry_run, force)
        _run(None, resume, plugins, quiet=quiet, json=json, check_parts=check_parts)
        return
    from cse_cli.plugins.reporters import reporters_of
    from cse_cli.training.resolving import composition_of

    composition = composition_of(choice, plugins)
    reporters_of(composition.train.report, plugins.registry)  # which refuses unknown ones
    if save_recipe is not None:
        write_recipe(composition, save_recipe)
    begun = auto and out is not None and check_same(composition, out, plugins.registry)
    if dry_run:
        planned = planned_run(composition, plugins, out, force=force or bool(begun))
        if json:
            say_json(planned.as_dict())
        else:
            say_outline(planned.lines())
        return
    if begun == "finished" and is_first():
        if json:
            result = StoredRun(str(out), plugins).result or {}
            say_json({"run": str(out), "model": f"{out}/model", **result})
        else:
            echo(str(out) if quiet else f"run {str(out)!r} has already finished")
    if begun == "finished":
        return
    how = {"quiet": quiet, "json": json, "force": force, "check_parts": check_parts}
    _run(None if begun else composition, out, plugins, **how)


def _run(
    composition: Composition | None,
    folder: Path | None,
    plugins: Installed,
    *,
    quiet: bool,
    json: bool,
    force: bool = False,
    check_parts: bool = False,
) -> None:
    """Train into a folder, or go on with the run that is there, and print what came of it."""
    from cse_cli.training.running import outcome_json, run, show_outcome
    from cse_engine.run.signals import Stopped

    try:
        how = {"quiet": quiet or json, "force": force, "check_parts": check_parts}
        outcome, folder, reporter = run(composition, folder, plugins, **how)
    except Stopped as stopped:
        if is_first():
            echo_err(f"{stopped}; continue with `cse train --resume {quote(str(stopped.folder))}`")
        raise typer.Exit(130) from None
    if not is_first():
        return
    if json:
        say_json(outcome_json(outcome, folder, reporter))
    elif quiet:
        echo(str(folder))
    else:
        show_outcome(outcome, folder, plugins)
