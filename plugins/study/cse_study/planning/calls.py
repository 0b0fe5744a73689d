"""Points of studies that train nothing: a command or a function with its settings filled in."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from cse_core.errors import CseError, did_you_mean
from cse_core.recipes.option_types import plain
from cse_core.runtime.loading import load_factory

_BRACES = re.compile(r"\{([^{}]+)\}")


def words_of(command: Sequence[str], settings: Mapping[str, Any], where: str) -> tuple[str, ...]:
    """Return the words of a command with settings in the places of their names in braces.

    A word that is such a place alone takes as many words as a list has; the flag before it is
    repeated then. With an empty list, or none, flag and word are left out.

    Raises:
        CseError: If no setting has this name.
    """
    words: list[str] = []
    for word in command:
        alone = _BRACES.fullmatch(word)
        if alone is None:
            words.append(_BRACES.sub(lambda found: plain(_of(found[1], settings, where)), word))
            continue
        value = _of(alone[1], settings, where)
        values = value if isinstance(value, list) else [] if value is None else [value]
        flag = words.pop() if words and words[-1].startswith("-") else None
        for each in values:
            words += [plain(each)] if flag is None else [flag, plain(each)]
    return tuple(words)


def _of(name: str, settings: Mapping[str, Any], where: str) -> Any:
    if name not in settings:
        hint = did_you_mean(name, settings)
        raise CseError("no setting of this name", where=where, value=f"{{{name}}}", hint=hint)
    return settings[name]


def check_call(call: str, where: str) -> None:
    """Refuse a function that cannot be imported.

    Raises:
        CseError: If its module or it is missing.
    """
    if not callable(load_factory(call, where=where)):
        raise CseError("is not a function", where=where, value=call)
