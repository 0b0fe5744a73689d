"""Numbers that change over a round: a constant, or a curve from one value to another.

The core has ``linear`` and ``cosine``; plugins declare more by a ``ScheduleSpec``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema

Curve = Callable[[float, float, float], float]
"""``curve(start, end, done)``: the value where a share ``done``, from 0 to 1, of a round is done.

It lies between ``start`` and ``end``; ValueError, one line, refuses bounds that have no curve.
"""
_CALL = re.compile(r"\s*([a-z][a-z0-9/-]*)\s*\(([^,()]+),([^,()]+)\)\s*")


def _linear(start: float, end: float, done: float) -> float:
    return start + (end - start) * done


def _cosine(start: float, end: float, done: float) -> float:
    return end + (start - end) * (1 + math.cos(math.pi * done)) / 2


CURVES: Mapping[str, Curve] = {"linear": _linear, "cosine": _cosine}
"""The core's own curves by shape: a straight line, and half a period of a cosine."""


@dataclass(frozen=True)
class Schedule:
    """A number as a function of the finished share of a round.

    Attributes:
        shape: ``constant``, ``linear``, ``cosine`` (half a period), or one that a plugin declares.
        start: Value at the first step.
        end: Value at the last.
        curve: That of the shape; by default the core's.
    """

    shape: str
    start: float
    end: float
    curve: Curve | None = field(default=None, compare=False, repr=False)

    @classmethod
    def parse(cls, value: object, curves: Mapping[str, Curve] = CURVES) -> Schedule:
        """Read a number, a schedule's text, or a schedule; ``curves`` are those of each shape.

        Raises:
            ValueError: If the text is not a schedule or its bounds are refused.
        """
        if isinstance(value, Schedule):
            return value
        shape, curve = "constant", None
        ends: Sequence[Any] = (value, value)
        match = _CALL.fullmatch(value) if isinstance(value, str) else None
        if match is not None and match[1] in curves:
            shape, curve, ends = match[1], curves[match[1]], match.group(2, 3)
        try:
            start, end = map(float, ends)
        except (TypeError, ValueError, OverflowError):
            start = end = math.nan
        if isinstance(value, bool) or not (math.isfinite(start) and math.isfinite(end)):
            calls = ", ".join(f"{name}(a,b)" for name in curves)
            raise ValueError(f"expects a finite number, or {calls}")
        if curve is not None:
            curve(start, end, 0.0)
        return cls(shape, start, end, curve)

    def at(self, step: float, total: float) -> float:
        """Return the value after ``step`` of ``total`` optimiser steps."""
        if self.shape == "constant":
            return self.start
        if total <= 0:
            return self.end
        done = min(max(step / total, 0.0), 1.0)
        return (self.curve or CURVES[self.shape])(self.start, self.end, done)

    @property
    def bounds(self) -> tuple[float, float]:
        """Return the smallest and largest value it can take."""
        return min(self.start, self.end), max(self.start, self.end)

    def __str__(self) -> str:
        """Return the text that parses to this schedule."""
        start, end = (repr(value).removesuffix(".0") for value in (self.start, self.end))
        return start if self.shape == "constant" else f"{self.shape}({start},{end})"

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: type[Any], handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Let pydantic models have fields of this type; ``curves`` may be in their context."""
        from pydantic_core import core_schema

        def plain(schedule: Schedule) -> float | str:
            return schedule.start if schedule.shape == "constant" else str(schedule)

        return core_schema.with_info_plain_validator_function(
            lambda value, info: cls.parse(value, (info.context or {}).get("curves", CURVES)),
            serialization=core_schema.plain_serializer_function_ser_schema(plain),
        )
