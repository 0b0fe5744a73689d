"""Type the values of a draft by their options models, and say what is wrong in plain words."""

from __future__ import annotations

import math
import re
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import annotated_types
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from cse_core.errors import CseError, collect_errors, did_you_mean
from cse_core.options import Options
from cse_core.schedule import CURVES, Curve, Schedule
from cse_engine.compose.expressions import CALL, evaluate, evaluate_number, uses
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
        forms: Forms of values as messages say them: ``a number``, ``none``; ``anything`` if the
            type is another.
        choices: Literal values.
        items: What a list's items are: one, or one for each where the length is fixed.
        fixed: Whether the list's length is fixed.
        bounds: Bounds of a number, in words.
    """

    def __init__(self, annotation: Any, metadata: Sequence[Any] = ()) -> None:
        self.forms: set[str] = set()
        self.choices: list[Any] = []
        self.items: list[Accepted] | None = None
        self.fixed = False
        self.bounds: list[str] = []
        self._collect(annotation)
        self.bounds += _bounds(metadata)

    @classmethod
    def of(cls, info: FieldInfo) -> Accepted:
        """Read what a field of an options model accepts."""
        return cls(info.annotation, info.metadata)

    @property
    def numeric(self) -> bool:
        """Whether numbers or schedules are accepted."""
        return not self.forms.isdisjoint(_NUMERIC)

    @property
    def free(self) -> bool:
        """Whether any text is accepted."""
        return not self.forms.isdisjoint(("a text", "anything"))

    def _collect(self, annotation: Any) -> None:
        origin, arguments = get_origin(annotation) or annotation, get_args(annotation)
        if origin is Annotated:
            self.bounds += _bounds(arguments[1:])
            self._collect(arguments[0])
        elif origin in (Union, types.UnionType):
            for argument in arguments:
                self._collect(argument)
        elif origin is Literal:
            self.choices += arguments
        elif origin in _LISTS:
            items = [item for item in arguments if item is not Ellipsis] or [str]
            self.items = [Accepted(item) for item in items]
            self.fixed = origin is tuple and Ellipsis not in arguments and bool(arguments)
        elif origin in _FORMS:
            self.forms.add(_FORMS[origin])
        else:
            models = isinstance(origin, type) and issubclass(origin, BaseModel)
            self.forms.add("a table" if models or origin in (dict, Mapping) else "anything")

    def describe(self) -> str:
        """Describe it with its article, as messages say it: an integer >= 1 or none."""
        words = []
        if self.choices:
            choices = ", ".join(format_value(choice) for choice in self.choices)
            words.append(f"one of {choices}" if len(self.choices) > 1 else choices)
        bounds = f" {' and '.join(self.bounds)}" if self.bounds else ""
        words += [f"{form}{bounds}" for form in _NUMERIC if form in self.forms][:1]
        words += ["true or false"] if "true or false" in self.forms else []
        words += ["a text"] if self.free else []
        if self.items is not None:
            inner = [_without_articles(item.describe()) for item in self.items]
            many = re.sub(r"^(number|integer|text|)(?= |$)|$", r"\1s", inner[0], count=1)
            same = f"{len(inner)} {many}" if self.fixed else f"a list of {many}"
            words.append(same if len({*inner}) == 1 else f"[{', '.join(inner)}]")
        words += [form for form in ("a table", "none") if form in self.forms]
        return " or ".join(words)


def describe_type(info: FieldInfo) -> str:
    """Describe what a field accepts as help and tables say it: integer >= 1 or none."""
    return _without_articles(Accepted.of(info).describe())


def _without_articles(text: str) -> str:
    return re.sub(r"(^| or )an? ", r"\1", text)


def format_value(value: object) -> str:
    """Format a value as a user would type it."""
    if value is None:
        return "none"
    if isinstance(value, bool):
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
        if isinstance(item, annotated_types.Interval):
            words += _bounds(list(item))
        elif isinstance(item, FieldInfo):
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
                if isinstance(value, str):
                    self.params[name] = evaluate(value, known, where=where)
                elif isinstance(value, int | float) and not isinstance(value, bool):
                    self.params[name] = evaluate(repr(value), {}, where=where)
                else:
                    raise CseError("must be a number", where=where, value=value)
            known[name] = self.params[name]

    def options(
        self, model: type[OptionsT], written: Mapping[str, Any], path: str
    ) -> OptionsT | None:
        """Return the options, or None where a mistake was added to ``errors``."""
        count = len(self.errors)
        values: dict[str, Any] = {}
        for name, value in written.items():
            where = f"{path}.{name}"
            info = model.model_fields.get(name)
            with collect_errors(self.errors):
                if info is None:
                    hint = _unknown_option(name, model)
                    raise CseError("unknown option", where=where, value=value, hint=hint)
                values[name] = self._value(value, Accepted.of(info), where)
        try:
            options = model.model_validate(values, context={"curves": self.curves})
        except ValidationError as error:
            reported = {mistake.where for mistake in self.errors}
            shown = {
                name: f"{self.expressions[f'{path}.{name}']} = {values[name]}"
                if f"{path}.{name}" in self.expressions
                else value
                for name, value in written.items()
            }
            mistakes = _mistakes(error, model, shown, path)
            self.errors += [mistake for mistake in mistakes if mistake.where not in reported]
            return None
        return options if len(self.errors) == count else None

    def _value(self, value: Any, wanted: Accepted, where: str) -> Any:
        """Return a value in the type that an option wants, as far as that is open."""
        if typed := isinstance(value, FlagText):
            value = parse_flag(value, wanted)
        if isinstance(value, list | tuple):
            if wanted.items is None:
                return value
            if wanted.fixed and len(wanted.items) != len(value):
                raise _must_be(wanted, where, value)
            items = wanted.items if wanted.fixed else wanted.items[:1] * len(value)
            return [self._value(item, kind, where) for item, kind in zip(value, items, strict=True)]
        if value in wanted.choices and not isinstance(value, bool):
            return value
        if isinstance(value, str) and value.lower() == "none" and "none" in wanted.forms:
            return None
        numeric = wanted.numeric and wanted.items is None
        if isinstance(value, str) and numeric and not wanted.free:
            return self._number(value, wanted, where)
        if isinstance(value, bool) and wanted.forms.isdisjoint(("true or false", "anything")):
            hint = f"a flag without a value means true: type --{where} VALUE"
            raise _must_be(wanted, where, value, hint if typed else None)
        if isinstance(value, float) and not math.isfinite(value) and wanted.numeric:
            raise CseError("must be a finite number", where=where, value=value)
        if wanted.items is not None and not wanted.fixed and isinstance(value, str):
            return value if "a text" in wanted.forms else [value]
        return value

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
        if uses(text, self.params):
            self.expressions[where] = text
        whole = "an integer" in wanted.forms and "a number" not in wanted.forms
        return int(number) if whole and isinstance(number, float) and number % 1 == 0 else number


def _unknown_option(name: str, model: type[Options]) -> str:
    """Suggest an option of this model, or of another of the core's tables."""
    hint = did_you_mean(name, model.model_fields)
    if model in CORE_OPTIONS.values() and not hint.startswith("did you mean"):
        paths = [
            f"{table}.{name}" for table, core in CORE_OPTIONS.items() if name in core.model_fields
        ]
        return f"did you mean {paths[0]}?" if paths else hint
    return hint


def parse_flag(text: FlagText, wanted: Accepted) -> Any:
    """Return a value of the command line: in TOML's syntax first, else as text."""
    parsed = _parse(str(text))
    text_too = "a text" in wanted.forms
    if isinstance(parsed, str) and "," in parsed and wanted.items is not None and not text_too:
        return [item.strip() for item in parsed.split(",")]
    if isinstance(parsed, str) or parsed in wanted.choices:
        return parsed
    lists = wanted.items is not None and isinstance(parsed, list)
    tables = ("a table" in wanted.forms or wanted.items is not None) and isinstance(parsed, dict)
    if text_too and not lists and not tables:
        return str(text)  # brackets and braces too: "[X] means [MASK]" is a prompt
    if wanted.items is not None and not wanted.numeric and not isinstance(parsed, list | dict):
        item = wanted.items[0]
        if "a text" in item.forms:
            return [str(text)]
        if item.numeric and not wanted.fixed and not isinstance(parsed, bool):
            return [parsed]  # one number is a list of one
    return parsed


def _parse(text: str, lists: bool = True) -> Any:
    try:
        table = parse_toml(f"value = {text}")
    except ValueError:
        table = {}
    if set(table) == {"value"}:
        return table["value"]
    if lists and text.startswith("[") and text.endswith("]"):
        inner = text[1:-1].strip()
        return [_parse(item.strip(), False) for item in inner.split(",")] if inner else []
    return text


def _must_be(wanted: Accepted, where: str, value: object, hint: str | None = None) -> CseError:
    return CseError(f"must be {wanted.describe()}", where=where, value=value, hint=hint)


def _mistakes(
    error: ValidationError, model: type[Options], written: Mapping[str, Any], path: str
) -> list[CseError]:
    """Return one error for each option that pydantic refused."""
    first: dict[str, ErrorDetails] = {}
    for details in error.errors(include_url=False):
        first.setdefault(str(details["loc"][0]) if details["loc"] else "", details)
    return [
        CseError(
            _plain_words(details, model.model_fields.get(name)),
            where=f"{path}.{name}" if name else path,
            value=written.get(name),
        )
        for name, details in first.items()
    ]


def _plain_words(details: ErrorDetails, info: FieldInfo | None) -> str:
    kind = details["type"]
    if kind in ("value_error", "assertion_error"):
        return str(details["ctx"]["error"])
    if kind == "missing":
        return "is required"
    if info is None or kind.startswith(("string_too", "string_pattern", "too_")):
        return f"must{details['msg'].partition(' should')[2]}"
    return f"must be {Accepted.of(info).describe()}"
