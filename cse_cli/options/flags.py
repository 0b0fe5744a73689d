"""From words of the command line to settings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from cse_core.errors import CseError
from cse_core.hookspecs import COMPONENT_SPECS

PART_FLAGS = tuple(COMPONENT_SPECS)
"""Kinds of parts, each with a flag of its name."""
_SETTING = re.compile(r"--(?P<path>[a-z_]+\.[^=\s]+)(?:=(?P<value>.*))?", re.DOTALL)
_NEGATIVE = re.compile(r"-\.?\d")
_NO_PLUGIN = "--no-plugin"
_SHORT = {"recipe": "-r", "model": "-m", "data": "-d", "out": "-o"}
_ONCE = ("recipe", "model", "prompt", "out", "seed", "resume", "save-recipe")
_LONG = {"seed": "train.seed", "model": "model.name", "prompt": "model.prompt",
         "data": "data.path", "dev": "train.dev", "report": "train.report"}  # fmt: skip
_WITH_VALUE = (*_ONCE, "data", "dev", "set", "report", *PART_FLAGS)


def take_no_plugin(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Take ``--no-plugin NAME`` out of a command line, wherever it stands.

    Returns:
        The other words, and the plugins to leave out.
    """
    kept: list[str] = []
    left_out: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            return [*kept, word, *rest], left_out
        if word == _NO_PLUGIN:
            if not rest or rest[0].startswith("-"):
                raise CseError("no name follows", where=_NO_PLUGIN, hint="see cse list-plugins")
            left_out.append(rest.pop(0))
        elif word.startswith(f"{_NO_PLUGIN}="):
            left_out.append(word.partition("=")[2])
        else:
            kept.append(word)
    return kept, left_out


def check_once(words: Sequence[str]) -> None:
    """Refuse a flag that takes one value and is given again; of an option the last value counts."""
    given = _values(settings_as_sets(words))
    paths = {text.partition("=")[0] for text in given["set"]}
    for flag, path in _LONG.items():
        if given[flag] and path in paths:
            raise CseError(f"is --{path} too", where=f"--{flag}", hint="leave one out")
    for flag in _ONCE:
        if len(values := dict.fromkeys(given[flag.replace("-", "_")])) > 1:
            hint = "leave one out"
            if flag == "recipe":
                hint = "name one, and add parts of the other: --loss +NAME"
            what = f"given more than once ({', '.join(values)})"
            raise CseError(what, where=f"--{flag}", hint=hint)


def _values(words: Iterable[str]) -> dict[str, list[str]]:
    """Return the values of each flag of a command line, which may have mistakes elsewhere."""
    from argparse import ArgumentParser

    parser = ArgumentParser(add_help=False, allow_abbrev=False)
    for name in _WITH_VALUE:
        flags = filter(None, (f"--{name}", _SHORT.get(name)))
        parser.add_argument(*flags, nargs="?", action="append", default=[])
    parsed, _ = parser.parse_known_args(list(words))
    return {name: [*filter(None, values)] for name, values in vars(parsed).items()}


def settings_as_sets(words: Sequence[str]) -> list[str]:
    """Write every flag of an option, ``--train.lr 3e-5``, as ``--set train.lr=3e-5``.

    The composer reads them then as it reads a recipe, and its errors know every part. A flag
    without a value is ``true``.
    """
    changed: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            return [*changed, word, *rest]
        match = _SETTING.fullmatch(word)
        if match is None:
            changed.append(word)
            continue
        value = match["value"]
        if value is None:
            is_value = rest and (not rest[0].startswith("-") or _NEGATIVE.match(rest[0]))
            value = rest.pop(0) if is_value else "true"
        changed += ["--set", f"{match['path']}={value}"]
    return changed


@dataclass
class Choice:
    """The parts and settings that a command line of ``train`` chooses.

    Attributes:
        kinds: Values of each kind's flag.
        sets: ``path=value``, in the order in which they were given.
    """

    recipe: str | None = None
    model: str | None = None
    data: list[str] = field(default_factory=list)
    dev: list[str] = field(default_factory=list)
    kinds: dict[str, list[str]] = field(default_factory=dict)
    sets: list[str] = field(default_factory=list)


def peek(words: Iterable[str]) -> Choice:
    """Read the choice of parts from a command line that may have mistakes elsewhere."""
    given = _values(settings_as_sets(list(words)))
    recipe, model = (next(reversed(given[name]), None) for name in ("recipe", "model"))
    kinds: dict[str, list[str]] = {kind: given[kind] for kind in PART_FLAGS if given[kind]}
    return Choice(recipe, model, given["data"], given["dev"], kinds, given["set"])
