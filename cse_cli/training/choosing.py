"""Options of the commands that choose a composition, such as ``train``."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cse_cli.options import flags
from cse_cli.options.completion import complete_data, complete_model, complete_part, complete_recipe
from cse_cli.options.flags import PART_FLAGS, Choice
from cse_cli.options.signatures import described, parameters, with_flags
from cse_cli.plugins.installed import Installed
from cse_cli.terminal.console import literal
from cse_core.errors import CseError, did_you_mean
from cse_core.hookspecs import COMPONENT_SPECS

if TYPE_CHECKING:
    from cse_cli.options.paths import OptionPath
    from cse_core.records import CommandSpec

PARTS, RUN, SHOWN = "Parts", "Run", "What is shown"
"""Panels of help."""
_COMPLETION = "_CSE_COMPLETE"
_HELP, _HELP_ALL = ("--help", "-h"), "--help-all"


def completing() -> bool:
    """Tell whether the shell asks what it may offer at the tabulator key."""
    return _COMPLETION in os.environ


def asked(words: Sequence[str]) -> list[str]:
    """Return the command line, or that which the shell wants completed."""
    if not completing():
        return list(words)
    # zsh and fish give the line as the first, bash as the second.
    line = os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS", "")
    return line.split()[1:]


def takes_choice(words: Sequence[str], chosen: CommandSpec | None) -> bool:
    """Tell whether the command of a command line chooses a composition.

    ``chosen`` is the record of the command, None of one of the command line's own.
    """
    first = next((word for word in words if not word.startswith("-")), None)
    return first == "train" if chosen is None else chosen.takes_choice


def with_settings(words: list[str], chosen: CommandSpec | None) -> list[str]:
    """Rewrite flags of options as ``--set``, in commands that choose a composition."""
    if not takes_choice(words, chosen):
        return words
    flags.check_once(words)
    return flags.settings_as_sets(words)


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

    The command has the name of its function; the plugins are loaded only for help.
    """
    help_asked = completing() or (topic is not None and any(word in _HELP for word in words))
    if not (help_asked and command.__name__ in words):
        return command
    from cse_cli.training.resolving import help_options

    options = help_options(flags.peek(words), plugins)
    if topic and not completing():
        about = [entry for entry in options if f"{entry.path}.".startswith(f"{topic}.")]
        if not about:
            paths = [entry.path.rpartition(".")[0] for entry in options]
            known = [*paths, *(path.partition(".")[0] for path in paths)]
            kind, _, name = topic.partition(".")
            exists = kind in PART_FLAGS and name and plugins.registry.has(kind, name)
            hint = f"add the part: --{kind} {name}" if exists else did_you_mean(topic, known)
            raise CseError("no options of this run", where="--help", value=topic, hint=hint)
        return _topic(command.__name__, about)
    return _with_options(command, options)


def _with_options(
    command: Callable[..., None], options: Sequence[OptionPath]
) -> Callable[..., None]:
    """Return a command with one more flag for each option of a run.

    The flags are there to be shown; ``settings_as_sets`` has taken those given out of the command
    line before it is parsed. Each is an optional text whose default stands in its help, since the
    composer reads the value and "not given" is another thing than "given the default".
    """
    signature = inspect.signature(command, eval_str=True)
    shown = {f"option_{number}": _flag(option) for number, option in enumerate(options)}

    def run(**values: Any) -> None:
        command(**{name: values[name] for name in signature.parameters})

    return described(run, command, [*signature.parameters.values(), *parameters(shown)])


def _topic(name: str, options: Sequence[OptionPath]) -> Callable[..., None]:
    """Return a command whose help shows these options alone."""

    def command() -> None:
        """Options of this run; --help shows the command's own."""

    command.__name__ = name
    return _with_options(command, options)


def _flag(option: OptionPath) -> Any:
    accepted = option.type
    if option.default == "none":
        accepted = accepted.removesuffix(" or none")  # the default says so
    text = f"{option.description} [{accepted}, default: {option.default}]".strip()
    shown = typer.Option(
        f"--{option.path}",
        metavar="VALUE",
        help=literal(text),
        rich_help_panel=literal(option.panel),
        show_default=False,
    )
    return Annotated[str | None, shown]


def choice_flags(*, dev: bool = False) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the flags that choose a composition, in place of its parameter ``choice``.

    Args:
        dev: Whether dev sets are among them; without, the composition has none.
    """

    def changed(command: Callable[..., None]) -> Callable[..., None]:
        chosen = {**_CHOICE, **(_DEV if dev else {})}

        def choice(given: dict[str, Any]) -> Choice:
            seed = [] if given["seed"] is None else [f"train.seed={given['seed']}"]
            if given["prompt"] is not None:  # quoted, since a space at its end counts
                seed.append(f"model.prompt={json.dumps(given['prompt'], ensure_ascii=False)}")
            return Choice(
                given["recipe"],
                given["model"],
                given["data"] or [],
                (given["dev"] or []) if dev else ["none"],
                {kind: given[kind] for kind in PART_FLAGS if given[kind]},
                [*seed, *(given["settings"] or [])],
            )

        return with_flags(command, "choice", parameters(chosen), choice)

    return changed


def option(*names: str, panel: str = RUN, **about: Any) -> Any:
    """Return a flag of a command under a panel of its help."""
    return typer.Option(*names, rich_help_panel=panel, **about)


def _part_flag(kind: Any, help: str) -> Any:
    complete = complete_part(kind)
    about = option(f"--{kind}", metavar="NAME", help=help, panel=PARTS, autocompletion=complete)
    return Annotated[list[str] | None, about]


_CHOICE: dict[str, Any] = {
    "recipe": Annotated[
        str | None,
        option("--recipe", "-r", metavar="NAME|FILE", help="Recipe, TOML file, or run to repeat.",
                panel=PARTS, autocompletion=complete_recipe),
    ],
    **{
        kind: _part_flag(kind, str(record.__doc__).partition("\n")[0])
        for kind, record in COMPONENT_SPECS.items()
    },
    "model": Annotated[
        str | None,
        option("--model", "-m", metavar="MODEL", help="Encoder, folder, run, or hub name.",
                autocompletion=complete_model),
    ],
    "prompt": Annotated[
        str | None,
        option("--prompt", metavar="NAME|TEXT",
                help="Text before each text, or prompt's name."),
    ],
    "data": Annotated[
        list[str] | None,
        option("--data", "-d", metavar="FILE|NAME", help="Training texts; may be repeated.",
                autocompletion=complete_data),
    ],
    "settings": Annotated[
        list[str] | None,
        option("--set", metavar="PATH=VALUE", help="Any option; --PATH VALUE is the same."),
    ],
    "seed": Annotated[str | None, option("--seed", metavar="N", help="Random seed.")],
}  # fmt: skip
_DEV = {
    "dev": Annotated[
        list[str] | None,
        option("--dev", metavar="FILE|NAME", help="Graded pairs that choose the checkpoint."),
    ]
}
