"""Type the values of a draft by their options models, and say what is wrong in plain words.

``Accepts`` is what an option's type accepts, read from its annotation. A number may be an
expression over parameters: ``"1 - alpha"``, ``"linear(0, 2*beta)"``.
"""

from __future__ import annotations

import ast
import math
import operator
import re
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import annotated_types
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from cse_core.errors import CseError, collect_errors, did_you_mean
from cse_core.options import Options
from cse_core.schedule import CURVES, Curve, Schedule
from cse_engine.compose.reading import parse_toml
from cse_engine.compose.settings import CORE_OPTIONS

OptionsT = TypeVar("OptionsT", bound=Options)
_NAMES = re.compile(r"\b[^\W\d]\w*")
_OPERATIONS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
}  # fmt: skip
_CALL = re.compile(r"\s*([a-z][\w/-]*)\s*\(")
_SCHEDULE = re.compile(rf"{_CALL.pattern}(.*)\)\s*", re.DOTALL)
_MAX_CHARACTERS = 200
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
        choices = ", ".join(format_value(choice) for choice in found.choices)
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


def format_value(value: object) -> str:
    """Return a value as a user would type it."""
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
            f"{word} {format_value(getattr(item, kind.__name__.lower()))}"
            for kind, word in _BOUNDS
            if isinstance(item, kind)
        ]
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
                values[name] = self._value(value, field_accepts(info), where)
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
            found = _mistakes(error, model, shown, path)
            self.errors += [mistake for mistake in found if mistake.where not in reported]
            return None
        return options if len(self.errors) == count else None

    def _value(self, value: Any, wanted: Accepts, where: str) -> Any:
        """Return a value in the type that an option wants, as far as that is open."""
        if typed := isinstance(value, FlagText):
            value = parse_flag(value, wanted)
        if isinstance(value, list | tuple):
            if wanted.items is None:
                return value
            inner = [accepts(item) for item in wanted.items]
            if wanted.fixed and len(inner) != len(value):
                raise _must_be(wanted, where, value)
            if not wanted.fixed:
                inner = inner[:1] * len(value)
            return [self._value(item, kind, where) for item, kind in zip(value, inner, strict=True)]
        if value in wanted.choices and not isinstance(value, bool):
            return value
        if isinstance(value, str) and value.lower() == "none" and wanted.none:
            return None
        numeric = wanted.numeric and wanted.items is None
        if isinstance(value, str) and numeric and not wanted.text and not wanted.anything:
            return self._number(value, wanted, where)
        if isinstance(value, bool) and not wanted.flag and not wanted.anything:
            hint = f"a flag without a value means true: type --{where} VALUE"
            raise _must_be(wanted, where, value, hint if typed else None)
        if isinstance(value, float) and not math.isfinite(value) and wanted.numeric:
            raise CseError("must be a finite number", where=where, value=value)
        if wanted.items is not None and not wanted.fixed and isinstance(value, str):
            return value if wanted.text else [value]
        return value

    def _number(self, text: str, wanted: Accepts, where: str) -> Any:
        try:
            number = evaluate_number(text, self.params, self.curves, where=where)
        except CseError:
            call = _CALL.match(text)
            if wanted.schedule and call and call[1] not in self.curves:
                hint = f"schedules are {', '.join(f'{shape}(a,b)' for shape in self.curves)}"
                raise _must_be(wanted, where, text, hint) from None
            if not self.params and not set(text) & set("+*/()"):
                raise _must_be(wanted, where, text) from None
            raise
        if not self.params.keys().isdisjoint(_NAMES.findall(text)):
            self.expressions[where] = text
        if isinstance(number, float) and wanted.whole and not wanted.number:
            return int(number) if number.is_integer() else number
        return number


def _unknown_option(name: str, model: type[Options]) -> str:
    """Return what was meant: an option of this model, or of another of the core's tables."""
    hint = did_you_mean(name, model.model_fields)
    if model in CORE_OPTIONS.values() and not hint.startswith("did you mean"):
        paths = [
            f"{table}.{name}" for table, core in CORE_OPTIONS.items() if name in core.model_fields
        ]
        return f"did you mean {paths[0]}?" if paths else hint
    return hint


def parse_flag(text: FlagText, wanted: Accepts) -> Any:
    """Return a value of the command line: in TOML's syntax first, else as text."""
    parsed = _parse(str(text))
    if isinstance(parsed, str) and "," in parsed and wanted.items is not None and not wanted.text:
        return [item.strip() for item in parsed.split(",")]
    if isinstance(parsed, str) or parsed in wanted.choices:
        return parsed
    lists = wanted.items is not None and isinstance(parsed, list)
    tables = (wanted.table or wanted.items is not None) and isinstance(parsed, dict)
    if wanted.text and not lists and not tables:
        return str(text)  # brackets and braces too: "[X] means [MASK]" is a prompt
    if wanted.items is not None and not wanted.numeric and not isinstance(parsed, list | dict):
        item = accepts(wanted.items[0])
        if item.text:
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


def _must_be(wanted: Accepts, where: str, value: object, hint: str | None = None) -> CseError:
    return CseError(f"must be {in_words(wanted)}", where=where, value=value, hint=hint)


def _mistakes(
    error: ValidationError, model: type[Options], written: Mapping[str, Any], path: str
) -> list[CseError]:
    """Return one error for each option that pydantic refused."""
    first: dict[str, ErrorDetails] = {}
    for details in error.errors(include_url=False):
        first.setdefault(str(details["loc"][0]) if details["loc"] else "", details)
    return [
        CseError(
            _in_plain_words(details, model.model_fields.get(name)),
            where=f"{path}.{name}" if name else path,
            value=written.get(name),
        )
        for name, details in first.items()
    ]


def _in_plain_words(details: ErrorDetails, info: FieldInfo | None) -> str:
    kind, said = details["type"], details["msg"]
    if kind in ("value_error", "assertion_error"):
        return str(details["ctx"]["error"])
    if kind == "missing":
        return "is required"
    if info is None or kind.startswith(("string_too", "string_pattern", "too_")):
        return f"must{said.partition(' should')[2]}"
    return f"must be {in_words(field_accepts(info))}"


def evaluate(text: str, params: Mapping[str, float], *, where: str | None = None) -> float:
    """Return the finite value of an expression of numbers, parameters, + - * / and parentheses."""
    try:
        if len(text) > _MAX_CHARACTERS:
            raise SyntaxError
        tree = ast.parse(text.strip(), mode="eval")
        value = _node_value(tree.body, params, where)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        what = "is neither a number nor an expression of parameters"
        hint = "write a number, or + - * / ( ) over names of [params]"
        raise CseError(what, where=where, value=text, hint=hint) from None
    except (ZeroDivisionError, OverflowError):
        raise CseError("divides by zero or overflows", where=where, value=text) from None
    if not math.isfinite(value):
        raise CseError("is not a finite number", where=where, value=text)
    return value


def evaluate_number(
    text: str,
    params: Mapping[str, float],
    curves: Mapping[str, Curve] = CURVES,
    *,
    where: str | None = None,
) -> float | str:
    """Return the number of an expression, or a schedule's text with its bounds evaluated."""
    match = _SCHEDULE.fullmatch(text)
    if match is None or match[1] not in curves:
        return evaluate(text, params, where=where)
    bounds = match[2].split(",")
    if len(bounds) != 2:
        hint = f"write {match[1]}(from,to)"
        raise CseError("expects two numbers", where=where, value=text, hint=hint)
    start, end = (evaluate(bound, params, where=where) for bound in bounds)
    return f"{match[1]}({start!r},{end!r})"


def _node_value(node: ast.expr, params: Mapping[str, float], where: str | None) -> float:
    if isinstance(node, ast.Constant):
        if isinstance(node.value, int | float) and not isinstance(node.value, bool):
            return node.value
    elif isinstance(node, ast.Name):
        if node.id in params:
            return params[node.id]
        known = did_you_mean(node.id, params) if params else "no parameters are set; write a number"
        raise CseError("unknown parameter", where=where, value=node.id, hint=known)
    elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        left, right = _node_value(node.left, params, where), _node_value(node.right, params, where)
        return _OPERATIONS[type(node.op)](left, right)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        value = _node_value(node.operand, params, where)
        return -value if isinstance(node.op, ast.USub) else value
    raise SyntaxError
