"""Other values of a part's options, by which it is seen whether an option does anything."""

from __future__ import annotations

from collections.abc import Iterator
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import ValidationError

from cse_core.options import Options, is_location
from cse_core.schedule import Schedule

MOST = 5
"""Values of one option that are tried."""
_HONOURED = {
    "loss": ("similarity", "reduction", "directions"),
    "negatives": ("view",),
    "branch": ("mode", "embeddings"),
}
"""Options of every part of a kind that the part itself must honour; the core does the others."""


def asked_of(kind: str, options: Options, base: type[Options]) -> list[str]:
    """Return the options that a part of a kind must honour: its own, and some that it inherits."""
    inherited = {*base.model_fields} - {*_HONOURED.get(kind, ())}
    model = type(options)
    return [
        name
        for name, info in model.model_fields.items()
        if name not in inherited and not is_location(info) and any(others(options, name))
    ]


def others(options: Options, name: str) -> Iterator[Any]:
    """Yield other values of an option that its model takes, the most different first."""
    info, value = type(options).model_fields[name], getattr(options, name)
    bounds = [bound for item in info.metadata for bound in _bounds(item)]
    seen, tried = [value], 0
    given = {field: getattr(options, field) for field in options.model_fields_set}
    named = ("anchor", "positive") if name == "view" else ()
    for other in (*named, *_candidates(info.annotation, value, bounds)):
        if other in seen or tried == MOST:
            continue
        seen.append(other)
        try:
            type(options)(**{**given, name: other})
        except (ValidationError, ValueError):
            continue
        tried += 1
        yield other


def _bounds(item: Any) -> Iterator[float]:
    yield from (getattr(item, name) for name in ("ge", "gt", "le", "lt") if hasattr(item, name))


def _candidates(annotation: Any, value: Any, bounds: list[float]) -> Iterator[Any]:
    """Yield values of a type, whether a model takes them or not."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _candidates(get_args(annotation)[0], value, bounds)
    elif origin in (Union, UnionType):
        for inner in get_args(annotation):
            yield from _candidates(inner, value, bounds)
    elif origin is Literal:
        yield from get_args(annotation)
    elif annotation is bool:
        yield not value
    elif annotation is type(None):
        yield None
    elif annotation in (int, float):
        number = value if isinstance(value, int | float) else 0
        numbers = (1, 2 * number, number / 2, 2, 0.9, number + 1, *bounds, 0, 0.5, 0.25)
        yield from map(annotation, numbers)
    elif annotation is Schedule:
        yield from (Schedule("constant", end, end) for end in (0.5, 2.0))
