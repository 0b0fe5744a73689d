"""The arguments of a command or a function at a point, and the words of the command."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from cse_core.errors import CseError, did_you_mean
from cse_study.definition.points import Point
from cse_study.definition.schema import Study
from cse_study.planning.inputs import Inputs, filled

_NAME = re.compile(r"{(\w+)}")


def arguments_of(
    study: Study,
    point: Point,
    inputs: Inputs,
    *,
    steps: int | None = None,
    rows: int | None = None,
) -> dict[str, Any]:
    """Return the arguments of a study at a point, with names in the places of roles.

    Args:
        study: Its file.
        point: Whose values come over the study's own.
        inputs: What stands for roles.
        steps: In the place of an argument ``steps``, where the study has one.
        rows: In the place of an argument ``rows``, where the study has one.
    """
    given = {**study.arguments, **point.settings}
    for name, value in (("steps", steps), ("rows", rows)):
        if name in given and value is not None:
            given[name] = value
    return {name: filled(value, inputs) for name, value in given.items()}


def words_of(study: Study, arguments: Mapping[str, Any]) -> list[str]:
    """Return the words of the command with its arguments in the places of ``{name}``.

    A word that is an argument alone becomes as many words as a list has, none of an empty one.

    Raises:
        CseError: If the command names an argument that the study does not have.
    """
    words: list[str] = []
    for word in study.command:
        for name in _NAME.findall(word):
            if name not in arguments:
                hint = did_you_mean(name, list(arguments))
                raise CseError("no such argument", where="command", value=word, hint=hint)
        alone = _NAME.fullmatch(word)
        if alone and isinstance(values := arguments[alone[1]], list):
            words += map(str, values)
        else:
            words.append(_NAME.sub(lambda found: str(arguments[found[1]]), word))
    return words
