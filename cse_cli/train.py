"""``cse train``: compose parts into a run, show its plan, train it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cse_cli import flags
from cse_cli.completion import complete_data, complete_model, complete_part, complete_recipe
from cse_cli.console import say, say_json, tell
from cse_cli.flags import Choice
from cse_cli.installed import Installed, installed
from cse_cli.models import quieten
from cse_cli.train_checks import check_out, refuse_beside_resume
from cse_cli.train_checks import save_recipe as write_recipe
from cse_cli.train_report import outcome_json, show_in_short, show_outcome, show_plan
from cse_core.errors import CseError

if TYPE_CHECKING:
    from cse_core.composition import Composition

_PARTS, _RUN, _SHOW = "Parts", "Run", "What is shown"
_COMPLETION = "_CSE_COMPLETE"


def with_settings(words: list[str]) -> list[str]:
    """Rewrite ``train``'s flags of options as ``--set``; other commands have none."""
    return flags.settings_as_sets(words) if _is_train(words) else words


def command(words: Sequence[str], plugins: Installed) -> Callable[..., None]:
    """Return the command, with a flag for each option of the chosen parts where help is asked for.

    Args:
        words: The command line.
        plugins: The installed plugins, loaded only for help.
    """
    words = [*words, *os.environ.get("_TYPER_COMPLETE_ARGS", "").split()]
    asked = any(word in ("--help", "-h") for word in words) or _COMPLETION in os.environ
    if not (asked and "train" in words):
        return train
    from cse_cli.resolving import help_options

    return flags.with_options(train, help_options(flags.peek(words), plugins))


def _is_train(words: Sequence[str]) -> bool:
    return next((word for word in words if not word.startswith("-")), None) == "train"


def _part_option(kind: Any, noun: str) -> Any:
    return typer.Option(
        f"--{kind}",
        metavar="NAME",
        help=f"{noun}: NAME replaces the recipe's, +NAME adds one, ~NAME takes one away.",
        rich_help_panel=_PARTS,
        autocompletion=complete_part(kind),
    )


def train(
    context: typer.Context,
    recipe: Annotated[
        str | None,
        typer.Option(
            "--recipe",
            "-r",
            metavar="NAME|FILE",
            help="An installed recipe, a TOML file, or a run, which is repeated.",
            rich_help_panel=_PARTS,
            autocompletion=complete_recipe,
        ),
    ] = None,
    aug: Annotated[list[str] | None, _part_option("aug", "Augmenter")] = None,
    pool: Annotated[list[str] | None, _part_option("pool", "Pooler or head")] = None,
    positives: Annotated[list[str] | None, _part_option("positives", "Positive miner")] = None,
    negatives: Annotated[list[str] | None, _part_option("negatives", "Negative store")] = None,
    loss: Annotated[list[str] | None, _part_option("loss", "Loss")] = None,
    branch: Annotated[list[str] | None, _part_option("branch", "Branch")] = None,
    metric: Annotated[list[str] | None, _part_option("metric", "Metric")] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            metavar="MODEL",
            help="Encoder to start from: an installed one, a folder, a run, or a hub name.",
            rich_help_panel=_RUN,
            autocompletion=complete_model,
        ),
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(
            "--data",
            "-d",
            metavar="FILE|NAME",
            help="Training texts: txt, csv, tsv, jsonl, json, parquet (each also .gz), an "
            "installed data set, or owner/name of the hub; may be repeated.",
            rich_help_panel=_RUN,
            autocompletion=complete_data,
        ),
    ] = None,
    dev: Annotated[
        list[str] | None,
        typer.Option(
            "--dev",
            metavar="FILE|none",
            help="Graded pairs that choose the checkpoint; may be repeated.",
            rich_help_panel=_RUN,
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="PATH=VALUE",
            help="Any option by its path, such as train.max_steps=100; --train.max_steps 100 is "
            "the same. May be repeated.",
            rich_help_panel=_RUN,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="Folder of the run; by default runs/ and the recipe's name and the time.",
            rich_help_panel=_RUN,
        ),
    ] = None,
    seed: Annotated[
        str | None,
        typer.Option(metavar="N", help="Seed of everything drawn.", rich_help_panel=_RUN),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Go on with a run that was stopped, from its last checkpoint.",
            rich_help_panel=_RUN,
        ),
    ] = None,
    save_recipe: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the resolved recipe to a TOML file.",
            rich_help_panel=_RUN,
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Check, show the plan, stop.", rich_help_panel=_SHOW),
    ] = False,
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet",
            "-q",
            help="Print only errors and, at the end, the folder of the run.",
            rich_help_panel=_SHOW,
        ),
    ] = False,
    json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Print one JSON object at the end and nothing before.",
            rich_help_panel=_SHOW,
        ),
    ] = False,
) -> None:
    """Train a sentence encoder: a recipe, parts of any papers, or the default.

    Every option of the chosen parts is a flag: add --help to a choice of parts to see them.
    """
    named = flags.given(
        {
            "aug": aug,
            "pool": pool,
            "positives": positives,
            "negatives": negatives,
            "loss": loss,
            "branch": branch,
            "metric": metric,
        }
    )
    sets = [*([f"train.seed={seed}"] if seed is not None else []), *(settings or [])]
    choice = Choice(recipe, model, list(data or []), list(dev or []), named, sets)
    plugins = installed(context)
    if resume is not None:
        refuse_beside_resume(choice, out, save_recipe, dry_run)
        _run(None, resume, plugins, quiet=quiet, json=json)
        return
    from cse_cli.resolving import resolve_choice

    composition = resolve_choice(choice, plugins)
    if save_recipe is not None:
        write_recipe(composition, save_recipe)
    if dry_run:
        show_plan(composition, choice, plugins, json=json)
        return
    _run(
        composition,
        out if out is not None else _named(composition),
        plugins,
        quiet=quiet,
        json=json,
    )


def _run(
    composition: Composition | None, folder: Path, plugins: Installed, *, quiet: bool, json: bool
) -> None:
    """Train into a folder; without a composition, go on with the run that is there."""
    first = int(os.environ.get("RANK", "0")) == 0
    quiet = quiet or not first
    if composition is not None and first:
        check_out(folder)
    if composition is None and not (folder / "run.toml").is_file():
        raise CseError(
            "is no run: it has no run.toml",
            where="--resume",
            value=str(folder),
            hint="name the folder that cse train made, such as runs/NAME",
        )
    from cse_cli.progress import reporter_for

    quieten()
    from cse_core import training
    from cse_core.trainer import Stopped

    def opening() -> None:
        plugins.warn_of_failed()
        if composition is not None:
            show_in_short(composition)

    with reporter_for(quiet=quiet, json=json, opening=opening) as reporter:
        try:
            if composition is None:
                outcome = training.resume(folder, plugins.registry, reporter=reporter)
            else:
                outcome = training.train(
                    composition,
                    plugins.registry,
                    out=folder,
                    reporter=reporter,
                    corpus=plugins.known_corpus(composition.data),
                )
        except Stopped as stopped:
            reporter.end()
            if first:
                tell(f"{stopped}; continue with `cse train --resume {folder}`")
            raise typer.Exit(130) from None
    if not first:
        return
    if json:
        say_json(outcome_json(outcome, folder, reporter))
    elif quiet:
        say(str(folder))
    else:
        show_outcome(outcome, folder)


def _named(composition: Composition) -> Path:
    """Return the folder of a run that names none.

    Raises:
        CseError: If several processes run, whose clocks would name several folders.
    """
    import time

    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise CseError("several processes need one folder", hint="name it: --out runs/NAME")

    from cse_core.training import default_out

    return default_out(composition, time.strftime("%Y%m%d-%H%M%S"))
