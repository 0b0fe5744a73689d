"""Options that choose a composition: those of ``train`` and of what measures a training."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cse_cli import flags
from cse_cli.completion import complete_data, complete_model, complete_part, complete_recipe
from cse_cli.flags import Choice
from cse_cli.installed import Installed

if TYPE_CHECKING:
    from cse_core.records import CommandSpec

PARTS, RUN, SHOWN = "Parts", "Run", "What is shown"
"""Panels of help."""
_COMPLETION = "_CSE_COMPLETE"


def asked(words: Sequence[str]) -> list[str]:
    """Return the command line, or that which the shell wants completed."""
    if _COMPLETION not in os.environ:
        return list(words)
    return os.environ.get("_TYPER_COMPLETE_ARGS", "").split()[1:]


def takes_choice(words: Sequence[str], chosen: CommandSpec | None) -> bool:
    """Tell whether the command of a command line chooses a composition.

    Args:
        words: The command line.
        chosen: The record of its command, None of one of the command line's own.
    """
    first = next((word for word in words if not word.startswith("-")), None)
    return first == "train" if chosen is None else chosen.takes_choice


def with_settings(words: list[str], chosen: CommandSpec | None) -> list[str]:
    """Rewrite flags of options as ``--set``, in commands that choose a composition."""
    return flags.settings_as_sets(words) if takes_choice(words, chosen) else words


def with_help(
    command: Callable[..., None], words: Sequence[str], plugins: Installed
) -> Callable[..., None]:
    """Return a command with a flag for each option of the chosen parts where help is asked for.

    Args:
        command: One of those that choose a composition; it has the name of its function.
        words: The command line.
        plugins: The installed plugins, loaded only for help.
    """
    help_asked = any(word in ("--help", "-h") for word in words) or _COMPLETION in os.environ
    if not (help_asked and command.__name__ in words):
        return command
    from cse_cli.resolving import help_options

    return flags.with_options(command, help_options(flags.peek(words), plugins))


def choice_of(
    recipe: str | None,
    kinds: Mapping[str, list[str] | None],
    *,
    model: str | None,
    data: list[str] | None,
    settings: list[str] | None,
    seed: str | None,
    dev: list[str] | None = None,
) -> Choice:
    """Return what a command line chose."""
    sets = [*([f"train.seed={seed}"] if seed is not None else []), *(settings or [])]
    return Choice(recipe, model, list(data or []), list(dev or []), flags.given(kinds), sets)


def _part_option(kind: Any, noun: str) -> Any:
    return typer.Option(
        f"--{kind}",
        metavar="NAME",
        help=f"{noun}: NAME replaces the recipe's, +NAME adds one, ~NAME removes one.",
        rich_help_panel=PARTS,
        autocompletion=complete_part(kind),
    )


RecipeOption = Annotated[
    str | None,
    typer.Option(
        "--recipe",
        "-r",
        metavar="NAME|FILE",
        help="Installed recipe, TOML file, or the folder of a run to repeat.",
        rich_help_panel=PARTS,
        autocompletion=complete_recipe,
    ),
]
AugOption = Annotated[list[str] | None, _part_option("aug", "Augmenter")]
PoolOption = Annotated[list[str] | None, _part_option("pool", "Pooler or head")]
PositivesOption = Annotated[list[str] | None, _part_option("positives", "Positive miner")]
NegativesOption = Annotated[list[str] | None, _part_option("negatives", "Negative store")]
LossOption = Annotated[list[str] | None, _part_option("loss", "Loss")]
BranchOption = Annotated[list[str] | None, _part_option("branch", "Branch")]
MetricOption = Annotated[list[str] | None, _part_option("metric", "Metric")]
StartOption = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        metavar="MODEL",
        help="Encoder to start from: an installed one, a folder, a run, or a hub name.",
        rich_help_panel=RUN,
        autocompletion=complete_model,
    ),
]
DataOption = Annotated[
    list[str] | None,
    typer.Option(
        "--data",
        "-d",
        metavar="FILE|NAME",
        help="Training texts: txt, csv, tsv, jsonl, json, parquet (each also .gz), an "
        "installed data set, or owner/name:configuration@split#revision on the hub; may be "
        "repeated.",
        rich_help_panel=RUN,
        autocompletion=complete_data,
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        help="Any option by its path, such as train.max_steps=100; --train.max_steps 100 is "
        "the same. May be repeated.",
        rich_help_panel=RUN,
    ),
]
SeedOption = Annotated[
    str | None,
    typer.Option(metavar="N", help="Random seed.", rich_help_panel=RUN),
]
