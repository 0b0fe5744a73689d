"""Options that choose a composition: those of ``train`` and of what measures a training."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cse_cli.options import flags
from cse_cli.options.completion import complete_data, complete_model, complete_part, complete_recipe
from cse_cli.options.flags import Choice
from cse_cli.plugins.installed import Installed
from cse_core.errors import CseError, did_you_mean

if TYPE_CHECKING:
    from cse_core.records import CommandSpec

PARTS, RUN, SHOWN = "Parts", "Run", "What is shown"
"""Panels of help."""
_COMPLETION = "_CSE_COMPLETE"
_HELP, _HELP_ALL = ("--help", "-h"), "--help-all"


def asked(words: Sequence[str]) -> list[str]:
    """Return the command line, or that which the shell wants completed."""
    if _COMPLETION not in os.environ:
        return list(words)
    # zsh and fish give the line as the first, bash as the second.
    line = os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS", "")
    return line.split()[1:]


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


def take_topic(words: list[str], chosen: CommandSpec | None) -> tuple[list[str], str | None]:
    """Take what help is asked about out of a command line that chooses a composition.

    Returns:
        The words with ``--help`` alone, and the topic: a path of options after ``--help``, empty
        for all (``--help-all``), None for the command's own flags.
    """
    if not takes_choice(words, chosen):
        return words, None
    if _HELP_ALL in words:
        return ["--help" if word == _HELP_ALL else word for word in words], ""
    for place, word in enumerate(words[:-1]):
        if place and word in _HELP and not words[place + 1].startswith("-"):
            return [*words[: place + 1], *words[place + 2 :]], words[place + 1]
    return words, None


def with_help(
    command: Callable[..., None], words: Sequence[str], plugins: Installed, topic: str | None
) -> Callable[..., None]:
    """Return a command with a flag for each option that help is asked about.

    Args:
        command: One of those that choose a composition; it has the name of its function.
        words: The command line.
        plugins: The installed plugins, loaded only for help.
        topic: As :func:`take_topic` returns it.

    Raises:
        CseError: If no option of the run has this topic.
    """
    completing = _COMPLETION in os.environ
    help_asked = completing or (topic is not None and any(word in _HELP for word in words))
    if not (help_asked and command.__name__ in words):
        return command
    from cse_cli.training.resolving import help_options

    options = help_options(flags.peek(words), plugins)
    if topic and not completing:
        about = [each for each in options if f"{each.path}.".startswith(f"{topic}.")]
        if not about:
            paths = [each.path.rpartition(".")[0] for each in options]
            known = [*paths, *(path.partition(".")[0] for path in paths)]
            raise CseError("no options of this run", where="--help", value=topic,
                           hint=did_you_mean(topic, known))  # fmt: skip
        return flags.with_options(flags.without_own(command), about)
    return flags.with_options(command, options)


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
        help=noun,
        rich_help_panel=PARTS,
        autocompletion=complete_part(kind),
    )


RecipeOption = Annotated[
    str | None,
    typer.Option(
        "--recipe",
        "-r",
        metavar="NAME|FILE",
        help="Recipe, TOML file, or run to repeat.",
        rich_help_panel=PARTS,
        autocompletion=complete_recipe,
    ),
]
AugOption = Annotated[list[str] | None, _part_option("aug", "Augmenters.")]
PoolOption = Annotated[list[str] | None, _part_option("pool", "Poolers and heads.")]
PositivesOption = Annotated[list[str] | None, _part_option("positives", "Positive miners.")]
NegativesOption = Annotated[list[str] | None, _part_option("negatives", "Negative stores.")]
LossOption = Annotated[list[str] | None, _part_option("loss", "Losses.")]
BranchOption = Annotated[list[str] | None, _part_option("branch", "Branches.")]
MetricOption = Annotated[list[str] | None, _part_option("metric", "Metrics.")]
AdapterOption = Annotated[list[str] | None, _part_option("adapter", "Adapter of the encoder.")]
StartOption = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        metavar="MODEL",
        help="Encoder, folder, run, or hub name.",
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
        help="Training texts; may be repeated.",
        rich_help_panel=RUN,
        autocompletion=complete_data,
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        help="Any option; --PATH VALUE is the same.",
        rich_help_panel=RUN,
    ),
]
SeedOption = Annotated[
    str | None,
    typer.Option(metavar="N", help="Random seed.", rich_help_panel=RUN),
]
