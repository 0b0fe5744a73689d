"""Whether the records of a plugin are what the core expects."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import fields
from typing import Any, get_args

from cse_core.capabilities import Role, describe_fault
from cse_core.errors import did_you_mean, truncate_repr
from cse_core.hookspecs import CORE_VIEWS, HOOK_RECORDS
from cse_core.records import (
    AugmenterSpec,
    ComponentSpec,
    EncoderSpec,
    GradientMode,
    Point,
    PoolSpec,
    RecipeSpec,
    Record,
    SourceSpec,
    StudySpec,
    ViewSpec,
)

NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
CLASS = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
STUDY = re.compile(rf"{NAME.pattern}/[a-z]+(-[A-Za-z0-9]+(\.[0-9]+)*)*")
DATA_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[^/\\:][^\\:]*")


class PluginFault(Exception):
    """A fault for a plugin's author to fix; the text says what and where."""


def check_records(hook: str, returned: object) -> list[Record]:
    """Check what an implementation of a hook returned, and list its records.

    Raises:
        PluginFault: If it is not an iterable of this hook's records, or a record is faulty.
    """
    expected, records = HOOK_RECORDS[hook], list[Record]()
    names = " or ".join(record.__name__ for record in expected)
    if returned is None:
        raise PluginFault(f"{hook} returned None; return its records, [] where it has none")
    if not isinstance(returned, Iterable) or isinstance(returned, str | bytes | dict):
        what = f"{hook} returned {truncate_repr(returned)}"
        raise PluginFault(f"{what}; it must return a list of {names}")
    for record in returned:
        if not isinstance(record, expected):
            what = f"{hook} returned {truncate_repr(record)} ({type(record).__name__})"
            raise PluginFault(f"{what} among its records; each must be a {names}")
        try:
            _check(record)
        except PluginFault as fault:
            where = f"{hook}, {record.kind} {record.name!r}"
            raise PluginFault(f"{where}: {fault}") from None
        records.append(record)
    return records


def check_names(records: Iterable[Record]) -> None:
    """Raise a ``PluginFault`` where two records of one plugin have the same kind and name."""
    seen: set[tuple[str, str]] = set()
    for record in records:
        if (record.kind, record.name) in seen:
            raise PluginFault(f"{record.kind} {record.name!r} is returned twice")
        seen.add((record.kind, record.name))


def _check(record: Record) -> None:
    form = STUDY if isinstance(record, StudySpec) else NAME
    if not isinstance(record.name, str) or not form.fullmatch(record.name):
        what = "a name is lower-case words and numbers joined by hyphens"
        place = ", for a study the paper's and the place's: mocose/table-7"
        raise PluginFault(what + place if form is STUDY else what)
    for field in fields(record):
        value = getattr(record, field.name)
        if field.name in ("factory", "options"):
            if not isinstance(value, str) or not CLASS.fullmatch(value):
                raise PluginFault(f"{field.name} is 'package.module:Class', not {value!r}")
        elif field.type == "str" and not (isinstance(value, str) and value.isprintable()):
            raise PluginFault(f"{field.name} is not one line of printable text")
    if not record.summary.strip():
        raise PluginFault("the summary is empty")
    if isinstance(record, RecipeSpec | StudySpec | EncoderSpec):
        fits = DATA_PATH.fullmatch(record.path)
        if not fits or ".." in record.path.split(":", 1)[1].split("/"):
            raise PluginFault(f"path is 'package:folder/file', not {record.path!r}")
    elif isinstance(record, ViewSpec):
        if record.role not in get_args(Role):
            raise PluginFault(f"role is {record.role!r}; {did_you_mean('', get_args(Role))}")
        if record.name in {view.name for view in CORE_VIEWS}:
            raise PluginFault("the core has a view of this name")
    elif isinstance(record, SourceSpec):
        if not all(re.fullmatch(r"(\.[a-z0-9]+)+", ending) for ending in record.endings):
            raise PluginFault(f"endings is {record.endings!r}, not ('.xlsx',) in lower case")
    if isinstance(record, ComponentSpec):
        _check_capabilities(record)
    if type(record) is PoolSpec:
        raise PluginFault("a pooler is a SliceSpec, RowPoolerSpec or HeadSpec")
    if isinstance(record, AugmenterSpec):
        _check_augmenter(record)


def _check_capabilities(spec: ComponentSpec) -> None:
    for field in ("provides", "requires"):
        declared: Any = getattr(spec, field)
        if callable(declared):  # with the options, whose class is not imported here
            continue
        if not isinstance(declared, tuple):
            raise PluginFault(f"{field} is {declared!r}, not a tuple of capabilities")
        for need in declared:
            for one in need if isinstance(need, tuple) else (need,):
                if (hint := describe_fault(one)) is not None:
                    raise PluginFault(
                        f"{field} has {one!r}, which is not a known capability; {hint}"
                    )


def _check_augmenter(spec: AugmenterSpec) -> None:
    if not isinstance(spec.views, tuple) or not all(isinstance(view, str) for view in spec.views):
        raise PluginFault(f"views is {spec.views!r}, not a tuple of names")
    if not callable(spec.point) and spec.point not in get_args(Point):
        raise PluginFault(f"point is {spec.point!r}; {did_you_mean('', get_args(Point))}")
    if not callable(spec.gradient) and spec.gradient not in (None, *get_args(GradientMode)):
        raise PluginFault(f"gradient is fresh or previous, not {spec.gradient!r}")
