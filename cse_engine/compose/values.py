"""Type the values of a draft by their options models, and say what is wrong in plain words."""

from __future__ import annotations

import math
import re
import types
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from cse_core.errors import CseError, collect_errors, did_you_mean
from cse_core.options import Options
from cse_core.schedule import CURVES, Curve, Schedule
from cse_engine.compose.expressions import CALL, NAMES, evaluate, evaluate_number
from cse_engine.compose.reading import parse_toml
from cse_engine.compose.settings import CORE_OPTIONS

OptionsT = TypeVar("OptionsT", bound=Options)
_FORMS: dict[Any, str] = {
    bool: "true or false", int: "an integer", float: "a number", str: "a text",
    Schedule: "a number or schedule", None: "none", type(None): "none",
}  # fmt: skip
_NUMERIC = ("a number or schedule", "a number", "an integer")
"""Forms of numbers; where a type has several, the first says it."""
_LISTS = (tuple, list, Sequence, set, frozenset)
_BOUNDS = {"Ge": ">=", "Gt": ">", "Le": "<=", "Lt": "<"}


class Accepted:
    """What a type accepts, read from its annotation and bounds that stand beside it.

    Attributes:
        forms: Forms of values as messages say them: ``a number``, ``none``.
        choices: Literal values.
        item: What a list's items are; None of another type.
        length: Items of the list, where their number is fixed.
        bounds: Bounds of a number, in words.
        numeric: Whether numbers or schedules are accepted.
    """

    def __init__(self, *annotations: Any, metadata: Sequence[Any] = ()) -> None:
        self.forms: set[str] = set()
        self.choices: list[Any] = []
        self.item: Accepted | None = None
        self.length: int | None = None
        self.bounds = _bounds(metadata)
        self._collect(*annotations)
        self.numeric = not self.forms.isdisjoint(_NUMERIC)

    def _collect(self, *annotations: Any) -> None:
        for annotation in annotations:
            origin, arguments = get_origin(annotation) or annotation, get_args(annotation)
            if origin is Annotated:
                self.bounds += _bounds(arguments[1:])
                self._collect(arguments[0])
            elif origin in (Union, types.UnionType):
                self._collect(*arguments)
            elif origin is Literal:
                self.choices += arguments
            elif origin in _LISTS:
                self.item = Accepted(*[item for item in arguments if item is not Ellipsis] or [str])
                fixed = origin is tuple and arguments and Ellipsis not in arguments
                self.length = len(arguments) if fixed else None
            elif origin in _FORMS:
                self.forms.add(_FORMS[origin])
            else:
                models = isinstance(origin, type) and issubclass(origin, BaseModel)
                self.forms.add("a table" if models or origin in (dict, Mapping) else "a text")

    def describe(self) -> str:
        """Describe it with its article, as messages say it: an integer >= 1 or none."""
        words = []
        if self.choices:
            choices = ", ".join(format_value(choice) for choice in self.choices)
            words.append(f"one of {choices}" if len(self.choices) > 1 else choices)
        bounds = f" {' and '.join(dict.fromkeys(self.bounds))}" if self.bounds else ""
        words += [f"{form}{bounds}" for form in _NUMERIC if form in self.forms][:1]
        words += [form for form in ("true or false", "a text") if form in self.forms]
        if self.item is not None:
            one = _without_articles(self.item.describe())
            many = re.sub(r"^(number|integer|text|)(?= |$)|$", r"\1s", one, count=1)
            words.append(f"{self.length or 'a list of'} {many}")
        words += [form for form in ("a table", "none") if form in self.forms]
        return " or ".join(words)


def describe_type(info: FieldInfo) -> str:
    """Describe what a field accepts as help and tables say it: integer >= 1 or none."""
    return _without_articles(Accepted(info.annotation, metadata=info.metadata).describe())


def _without_articles(text: str) -> str:
    return re.sub(r"(^| or )an? ", r"\1", text)


def format_value(value: object) -> str:
    """Format a value as a user would type it."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    if isinstance(value, tuple | list):
        return f"[{', '.join(format_value(item) for item in value)}]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {format_value(item)}" for key, item in value.items()) + "}"
    return str(value)


def _bounds(metadata: Sequence[Any]) -> list[str]:
    words = []
    for item in metadata:
        if isinstance(item, FieldInfo):
            words += _bounds(item.metadata)
        elif (kind := type(item).__name__) in _BOUNDS:
            words.append(f"{_BOUNDS[kind]} {format_value(getattr(item, kind.lower()))}")
    return words


class FlagText(str):
    """A value as it was typed on the command line; its option's type says how to read it."""


@dataclass
class OptionReader:
    """Reads written values into options models and collects the mistakes.

    ``expressions`` are values that were written as expressions of parameters, by option path;
    ``curves`` are those of schedules, by shape.
    """

    curves: Mapping[str, Curve] = field(default_factory=lambda: CURVES)
    params: dict[str, float] = field(default_factory=dict)
    errors: list[CseError] = field(default_factory=list)
    expressions: dict[str, str] = field(default_factory=dict)

    def read_params(self, written: Mapping[str, Any], hidden: int | None = None) -> None:
        """Evaluate the parameters in order; each may use those before it, and ``hidden``."""
        known: dict[str, float] = {} if hidden is None else {"hidden": hidden}
        for name, value in written.items():
            where, self.params[name] = f"params.{name}", 1.0
            with collect_errors(self.errors):
                if isinstance(value, bool) or not isinstance(value, str | int | float):
                    raise CseError("must be a number", where=where, value=value)
                self.params[name] = evaluate(str(value), known, where=where)
            known[name] = self.params[name]

    def options(
        self, model: type[OptionsT], written: Mapping[str, Any], path: str
    ) -> OptionsT | None:
        """Return the options, or None where a mistake was added to ``errors``."""
        count, values = len(self.errors), dict[str, Any]()
        for name, value in written.items():
            with collect_errors(self.errors):
                accepted = _accepted(model, name, value, path)
                values[name] = self._value(value, accepted, f"{path}.{name}")
        try:
            options = model.model_validate(values, context={"curves": self.curves, "path": path})
            return options if len(self.errors) == count else None
        except ValidationError as error:
            reported = {mistake.where for mistake in self.errors}
            for details in error.errors(include_url=False):
                name = str(details["loc"][0]) if details["loc"] else ""
                where = f"{path}.{name}" if name else path
                value = written.get(name)
                if where in self.expressions:
                    value = f"{self.expressions[where]} = {values[name]}"
                if where not in reported:  # the first of an option says enough
                    reported.add(where)
                    what = _in_plain_words(details, model.model_fields.get(name))
                    self.errors.append(CseError(what, where=where, value=value))
            return None

    def _value(self, value: Any, wanted: Accepted, where: str) -> Any:
        """Return a value in the type that an option wants, as far as that is open."""
        if typed := isinstance(value, FlagText):
            value = parse_flag(value, wanted)
        if isinstance(value, list | tuple):
            if wanted.item is None:
                return value
            if wanted.length not in (None, len(value)):
                raise _must_be(wanted, where, value)
            return [self._value(item, wanted.item, where) for item in value]
        if value in wanted.choices and not isinstance(value, bool):
            return value
        if isinstance(value, str) and value.lower() == "none" and "none" in wanted.forms:
            return None
        if isinstance(value, str) and wanted.numeric and "a text" not in wanted.forms:
            return self._number(value, wanted, where)
        if isinstance(value, bool) and "true or false" not in wanted.forms:
            hint = f"a flag without a value means true: type --{where} VALUE"
            raise _must_be(wanted, where, value, hint if typed else None)
        if isinstance(value, float) and not math.isfinite(value) and wanted.numeric:
            raise CseError("must be a finite number", where=where, value=value)
        listed = wanted.item and not wanted.length and "a text" not in wanted.forms
        return [value] if listed and isinstance(value, str | int | float) else value

    def _number(self, text: str, wanted: Accepted, where: str) -> Any:
        try:
            number = evaluate_number(text, self.params, self.curves, where=where)
        except CseError:
            call = CALL.match(text)
            if _FORMS[Schedule] in wanted.forms and call and call[1] not in self.curves:
                hint = f"schedules are {', '.join(f'{shape}(a,b)' for shape in self.curves)}"
                raise _must_be(wanted, where, text, hint) from None
            if not self.params and not set(text) & set("+*/()"):
                raise _must_be(wanted, where, text) from None
            raise
        if not self.params.keys().isdisjoint(NAMES.findall(text)):
            self.expressions[where] = text
        whole = "an integer" in wanted.forms and "a number" not in wanted.forms
        return int(number) if whole and isinstance(number, float) and number % 1 == 0 else number


def _accepted(model: type[Options], name: str, value: Any, path: str) -> Accepted:
    """Read what an option accepts; an unknown one may be of another of the core's tables."""
    if info := model.model_fields.get(name):
        return Accepted(info.annotation, metadata=info.metadata)
    tables = CORE_OPTIONS.items() if model in CORE_OPTIONS.values() else ()
    paths = [f"{table}.{name}" for table, core in tables if name in core.model_fields]
    hint = f"did you mean {paths[0]}?" if paths else did_you_mean(name, model.model_fields)
    raise CseError("unknown option", where=f"{path}.{name}", value=value, hint=hint)


def parse_flag(text: FlagText, wanted: Accepted) -> Any:
    """Return a value of the command line: in TOML's syntax first, else as text."""
    parsed, item, is_text = _parse(str(text)), wanted.item, "a text" in wanted.forms
    if isinstance(parsed, str):
        several = "," in parsed and item is not None and not is_text
        return [part.strip() for part in parsed.split(",")] if several else parsed
    nested = (list, dict) if item is not None else (dict,) if "a table" in wanted.forms else ()
    texts = item is not None and "a text" in item.forms
    # Brackets and braces too: "[X] means [MASK]" is a prompt.
    return str(text) if (is_text or texts) and not isinstance(parsed, nested) else parsed


def _parse(text: str, lists: bool = True) -> Any:
    with suppress(ValueError):
        table = parse_toml(f"value = {text}")
        if set(table) == {"value"}:
            return table["value"]
    if lists and text.startswith("[") and text.endswith("]"):
        return [_parse(item.strip(), False) for item in text[1:-1].split(",")]
    return text


def _must_be(wanted: Accepted, where: str, value: object, hint: str | None = None) -> CseError:
    return CseError(f"must be {wanted.describe()}", where=where, value=value, hint=hint)


def _in_plain_words(details: ErrorDetails, info: FieldInfo | None) -> str:
    kind = details["type"]
    if kind in ("value_error", "assertion_error"):
        return str(details["ctx"]["error"])
    if kind == "missing":
        return "is required"
    if info is None or kind.startswith(("string_too", "string_pattern", "too_")):
        return f"must{details['msg'].partition(' should')[2]}"
    return f"must be {Accepted(info.annotation, metadata=info.metadata).describe()}"
