"""Whether the records of a plugin are what the core expects."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterable
from dataclasses import fields
from typing import Any, get_args

from cse_core.capabilities import CAPABILITIES, CAPABILITY_PREFIXES, is_known
from cse_core.errors import did_you_mean
from cse_core.records import (
    AugmenterSpec,
    ComponentSpec,
    EncoderSpec,
    GradientMode,
    Point,
    PoolSpec,
    RecipeSpec,
    Record,
    ReporterSpec,
    StudySpec,
)
from cse_core.specs import HOOK_RECORDS

NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
FACTORY = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
STUDY = re.compile(rf"{NAME.pattern}/[a-z]+(-[A-Za-z0-9]+(\.[0-9]+)*)*")
DATA_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[^/\\:][^\\:]*")
_TOKENS = (*CAPABILITIES, *(f"{prefix}:NAME" for prefix in CAPABILITY_PREFIXES))


class PluginFault(Exception):
    """A fault for a plugin's author to fix; the text says what and where."""


def check_records(hook: str, returned: object) -> tuple[Record, ...]:
    """Return what a hook returned, checked.

    Raises:
        PluginFault: If it is not a list of this hook's records, or a record is faulty.
    """
    if not isinstance(returned, list):
        raise PluginFault(f"{hook} returned {_named(returned)}, not a list of records")
    expected = HOOK_RECORDS[hook]
    for item in returned:
        if not isinstance(item, expected):
            raise PluginFault(
                f"{hook} returned a list with {_named(item)} where {expected.__name__} belongs"
            )
        check_record(item, f"{hook}, {item.kind} {item.name!r}")
    return tuple(returned)


def check_names(records: Iterable[Record]) -> None:
    """Check that the records of one plugin have a name each.

    Raises:
        PluginFault: If two of one kind have the same.
    """
    seen: set[tuple[str, str]] = set()
    for record in records:
        if (record.kind, record.name) in seen:
            raise PluginFault(f"{record.kind} {record.name!r} is returned twice")
        seen.add((record.kind, record.name))


def check_record(record: Record, where: str) -> None:
    """Check the fields of a record.

    Raises:
        PluginFault: If one is faulty.
    """
    try:
        _check_fields(record)
        if isinstance(record, ComponentSpec):
            _check_tokens(record)
            _check_choices(record)
    except PluginFault as fault:
        raise PluginFault(f"{where}: {fault}") from fault.__cause__


def _check_fields(record: Record) -> None:
    form = STUDY if isinstance(record, StudySpec) else NAME
    if not isinstance(record.name, str) or not form.fullmatch(record.name):
        what = "a name is lower-case words and numbers joined by hyphens"
        raise PluginFault(f"{what}, for a study the paper's and the place's: mocose/table-7"
                          if form is STUDY else what)  # fmt: skip
    for each in fields(record):
        value = getattr(record, each.name)
        if each.type == "str" and not (isinstance(value, str) and value.isprintable()):
            raise PluginFault(f"{each.name} is not one line of printable text")
    if not record.summary.strip():
        raise PluginFault("the summary is empty")
    if isinstance(record, RecipeSpec | StudySpec | EncoderSpec):
        path = record.path
        fits = isinstance(path, str) and DATA_PATH.fullmatch(path)
        if not fits or ".." in path.split(":", 1)[1].split("/"):
            raise PluginFault(f"path is 'package:folder/file', not {path!r}")
    elif not isinstance(record.factory, str) or not FACTORY.fullmatch(record.factory):
        raise PluginFault(f"factory is 'package.module:Class', not {record.factory!r}")
    if isinstance(record, ComponentSpec | ReporterSpec):
        given, base = record.options, type(record).options
        if not inspect.isclass(given) or not issubclass(given, base):
            wanted = f"cse_core.options.{base.__name__}"
            raise PluginFault(f"options is {_named(given)}, not a subclass of {wanted}")
        for name, info in given.model_fields.items():
            try:
                json.dumps(info.get_default(call_default_factory=True), default=str)
            except Exception as error:
                raise PluginFault(f"the default of option {name} is not valid: {error}") from error


def _check_tokens(spec: ComponentSpec) -> None:
    for field in ("provides", "requires"):
        declared: Any = getattr(spec, field)
        if callable(declared):
            options = spec.default_options()
            if options is None:
                continue
            try:
                declared = declared(options)
            except Exception as error:
                raise PluginFault(f"{field} raised {type(error).__name__}: {error}") from error
        if not isinstance(declared, tuple):
            raise PluginFault(f"{field} is {declared!r}, not a tuple of capabilities")
        for need in declared:
            for token in need if isinstance(need, tuple) else (need,):
                if not isinstance(token, str) or not is_known(token):
                    hint = did_you_mean(str(token), _TOKENS)
                    raise PluginFault(
                        f"{field} has {token!r}, which is not a known capability; {hint}"
                    )


def _check_choices(spec: ComponentSpec) -> None:
    if type(spec) is PoolSpec:
        raise PluginFault("a pooler is a SliceSpec, RowPoolerSpec or HeadSpec")
    if not isinstance(spec, AugmenterSpec):
        return
    if not isinstance(spec.views, tuple) or not all(isinstance(view, str) for view in spec.views):
        raise PluginFault(f"views is {spec.views!r}, not a tuple of names")
    if not callable(spec.point) and spec.point not in get_args(Point):
        raise PluginFault(f"point is {spec.point!r}; {did_you_mean('', get_args(Point))}")
    if not callable(spec.gradient) and spec.gradient not in (None, *get_args(GradientMode)):
        raise PluginFault(f"gradient is fresh or previous, not {spec.gradient!r}")


def _named(value: object) -> str:
    if value is None:
        return "None"
    return value.__name__ if inspect.isclass(value) else f"a {type(value).__name__}"
