"""Whether the records of a plugin are what the core expects."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import fields
from typing import Any, get_args

from cse_core import records
from cse_core.capabilities import Role, describe_fault
from cse_core.errors import did_you_mean, truncate_repr
from cse_core.hookspecs import CORE_VIEWS, HOOK_RECORDS
from cse_core.records import GradientMode, Point, Record

NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
STUDY = re.compile(rf"{NAME.pattern}/[a-z]+(-[A-Za-z0-9]+(\.[0-9]+)*)*")
CHOICES: dict[str, tuple[str | None, ...]] = {
    "role": get_args(Role),
    "point": get_args(Point),
    "gradient": (None, *get_args(GradientMode)),
}


class PluginFault(Exception):
    """A fault for a plugin's author to fix; the text says what and where.

    Attributes:
        fix: What a user types; by default its module is to be corrected.
    """

    def __init__(self, what: str, *, fix: str = "") -> None:
        super().__init__(what)
        self.fix = fix


def check_records(hook: str, returned: object) -> list[Record]:
    """Check what an implementation of a hook returned, and list its records.

    Raises:
        PluginFault: If it is not an iterable of this hook's records, or a record is faulty.
    """
    expected, checked = HOOK_RECORDS[hook], list[Record]()
    names = " or ".join(record.__name__ for record in expected)
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
        checked.append(record)
    return checked


def _check(record: Record) -> None:
    for field in fields(record):
        if fault := _fault(field.name, str(field.type), getattr(record, field.name)):
            raise PluginFault(f"{field.name} {fault}")
    study = isinstance(record, records.StudySpec)
    if not (STUDY if study else NAME).fullmatch(record.name):
        example = "a paper and a place, mocose/table-7" if study else "hard-negatives"
        raise PluginFault(f"a name is lower-case words and numbers joined by hyphens: {example}")
    if not record.summary.strip():
        raise PluginFault("the summary is empty")
    if type(record) is records.PoolSpec:
        raise PluginFault("a pooler is a SliceSpec, RowPoolerSpec, MultiVectorSpec or HeadSpec")
    if isinstance(record, records.ViewSpec) and record.name in [view.name for view in CORE_VIEWS]:
        raise PluginFault("the core has a view of this name")


def _fault(name: str, kind: str, value: Any) -> str | None:
    """Describe what is wrong with a field of a record; None if nothing is."""
    if kind == "str" and not (isinstance(value, str) and value.isprintable()):
        return "is not one line of printable text"
    if callable(value):  # with the options, whose class is not imported here
        return None
    if kind == "tuple[str, ...]" or name in ("provides", "requires"):
        if not isinstance(value, tuple):
            return f"is {value!r}, not a tuple"
    if name in CHOICES and value not in CHOICES[name]:
        return f"is {value!r}; {did_you_mean('', map(str, CHOICES[name]))}"
    if name == "endings" and not all(re.fullmatch(r"(\.[a-z0-9]+)+", item) for item in value):
        return f"is {value!r}, not ('.xlsx',) in lower case"
    if name in ("provides", "requires"):
        for item in value:
            for one in item if isinstance(item, tuple) else (item,):
                if (hint := describe_fault(one)) is not None:
                    return f"has {one!r}, which is not a known capability; {hint}"
    return None
