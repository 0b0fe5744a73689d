"""What an option's type accepts, read from its annotation, and how to say it in plain words."""

from __future__ import annotations

import re
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from cse_core.schedule import Schedule


@dataclass
class Accepts:
    """What a type accepts.

    Attributes:
        choices: Literal values.
        items: Types of a list's items: one, or one for each where the length is fixed.
        fixed: Whether the list's length is fixed.
        bounds: Bounds of a number, in words.
    """

    choices: list[Any] = field(default_factory=list)
    text: bool = False
    number: bool = False
    whole: bool = False
    flag: bool = False
    schedule: bool = False
    none: bool = False
    table: bool = False
    anything: bool = False
    items: tuple[Any, ...] | None = None
    fixed: bool = False
    bounds: list[str] = field(default_factory=list)

    @property
    def numeric(self) -> bool:
        """Tell whether numbers or schedules are accepted."""
        return self.number or self.whole or self.schedule


def accepts(annotation: Any, metadata: Sequence[Any] = ()) -> Accepts:
    """Return what a type accepts; ``metadata`` holds bounds that stand beside it."""
    found = Accepts()
    _collect(annotation, found)
    found.bounds += _bounds(metadata)
    return found


def field_accepts(info: FieldInfo) -> Accepts:
    """Return what a field of an options model accepts."""
    return accepts(info.annotation, info.metadata)


def in_words(found: Accepts) -> str:
    """Return what is accepted with its article, as messages say it: an integer >= 1 or none."""
    words = []
    if found.choices:
        choices = ", ".join(plain(choice) for choice in found.choices)
        words.append(f"one of {choices}" if len(found.choices) > 1 else choices)
    bounds = f" {' and '.join(found.bounds)}" if found.bounds else ""
    if found.schedule:
        words.append(f"a number or schedule{bounds}")
    elif found.number:
        words.append(f"a number{bounds}")
    elif found.whole:
        words.append(f"an integer{bounds}")
    if found.flag:
        words.append("true or false")
    if found.text or found.anything:
        words.append("a text")
    if found.items is not None:
        inner = [type_text(accepts(item)) for item in found.items]
        many = re.sub(r"^(number|integer|text|)(?= |$)|$", r"\1s", inner[0], count=1)
        if found.fixed:
            same = len(set(inner)) == 1
            words.append(f"{len(inner)} {many}" if same else f"[{', '.join(inner)}]")
        else:
            words.append(f"a list of {many}")
    if found.table:
        words.append("a table")
    if found.none:
        words.append("none")
    return " or ".join(words)


def type_text(found: Accepts) -> str:
    """Return what is accepted as help and tables say it: integer >= 1 or none."""
    return re.sub(r"(^| or )an? ", r"\1", in_words(found))


def plain(value: object) -> str:
    """Return a value as a user would type it."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    if isinstance(value, tuple | list):
        return f"[{', '.join(plain(item) for item in value)}]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {plain(item)}" for key, item in value.items()) + "}"
    return str(value)


_FIELDS: dict[Any, str] = {
    bool: "flag", int: "whole", float: "number", str: "text", Schedule: "schedule",
    None: "none", type(None): "none",
}  # fmt: skip
_LISTS = (tuple, list, Sequence, set, frozenset)
_BOUNDS: tuple[tuple[type, str], ...] = (
    (annotated_types.Ge, ">="),
    (annotated_types.Gt, ">"),
    (annotated_types.Le, "<="),
    (annotated_types.Lt, "<"),
)


def _collect(annotation: Any, found: Accepts) -> None:
    origin, arguments = get_origin(annotation) or annotation, get_args(annotation)
    if origin is Annotated:
        found.bounds += _bounds(arguments[1:])
        _collect(arguments[0], found)
    elif origin in (Union, types.UnionType):
        for argument in arguments:
            _collect(argument, found)
    elif origin is Literal:
        found.choices += arguments
    elif origin in _FIELDS:
        setattr(found, _FIELDS[origin], True)
    elif origin in _LISTS:
        found.items = tuple(item for item in arguments if item is not Ellipsis) or (str,)
        found.fixed = origin is tuple and Ellipsis not in arguments and bool(arguments)
    elif origin in (dict, Mapping) or (isinstance(origin, type) and issubclass(origin, BaseModel)):
        found.table = True
    else:
        found.anything = True


def _bounds(metadata: Sequence[Any]) -> list[str]:
    words = []
    for item in metadata:
        if isinstance(item, annotated_types.Interval):
            words += _bounds(list(item))
        if isinstance(item, FieldInfo):
            words += _bounds(item.metadata)
        words += [
            f"{word} {plain(getattr(item, kind.__name__.lower()))}"
            for kind, word in _BOUNDS
            if isinstance(item, kind)
        ]
    return words
