"""Functions whose flags Typer sees with other parameters than their own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Command = Callable[..., None]


def parameters(annotations: Mapping[str, Any], values: Any = None) -> list[inspect.Parameter]:
    """Return parameters by name and annotation, whose defaults are attributes of ``values``."""
    return [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=getattr(values, name, None), annotation=of
        )
        for name, of in annotations.items()
    ]


def described(run: Command, like: Command, shown: Sequence[inspect.Parameter]) -> Command:
    """Return a function that Typer sees with the name and words of another, and parameters."""
    keyword = [param.replace(kind=inspect.Parameter.KEYWORD_ONLY) for param in shown]
    changed: Any = run
    changed.__doc__, changed.__name__ = like.__doc__, like.__name__
    changed.__signature__ = inspect.Signature(keyword)
    changed.__annotations__ = {param.name: param.annotation for param in keyword}
    return run


def with_flags(
    command: Command,
    name: str,
    flags: Sequence[inspect.Parameter],
    make: Callable[[dict[str, Any]], Any],
) -> Command:
    """Return a command with flags in place of a parameter, which gets what is made of them."""
    shown: list[inspect.Parameter] = []
    for param in inspect.signature(command, eval_str=True).parameters.values():
        shown += flags if param.name == name else [param]

    def run(**values: Any) -> None:
        made = make({param.name: values.pop(param.name) for param in flags})
        command(**{name: made}, **values)

    return described(run, command, shown)
