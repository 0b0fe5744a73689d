"""Numbers that change over a round: a constant, or a line, cosine or quarter cosine from a to b."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, Literal, get_args

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

Shape = Literal["constant", "linear", "cosine", "quarter-cosine"]
_SHAPES: tuple[str, ...] = get_args(Shape)[1:]  # those that are written as a call
_CALL = re.compile(rf"^\s*({'|'.join(_SHAPES)})\s*\(\s*([^,()]+)\s*,\s*([^,()]+)\s*\)\s*$")


@dataclass(frozen=True)
class Schedule:
    """A number as a function of the share of a round that is done.

    Attributes:
        shape: ``linear`` is a straight line; ``cosine`` half a period, as MoCoSE's momentum uses;
            ``quarter-cosine`` a quarter period over the first half of the round and ``end`` from
            there on (IS-CSE, Eq. 8), which refuses ``start > end`` because the published formula
            then falls below ``end``.
        start: Value at the first step.
        end: Value at the last.
    """

    shape: Shape
    start: float
    end: float

    @classmethod
    def parse(cls, value: object) -> Schedule:
        """Read a number, a schedule's text, or a schedule.

        Raises:
            ValueError: If the text is not a schedule or its bounds are refused.
        """
        if isinstance(value, Schedule):
            return value
        if isinstance(value, bool):
            raise ValueError("expects a number or a schedule, not true or false")
        if isinstance(value, int | float):
            return cls("constant", _number(value), _number(value))
        if not isinstance(value, str):
            raise ValueError("expects a number or a schedule such as linear(0,0.1)")
        match = _CALL.match(value)
        if match is None:
            try:
                number = _number(float(value))
            except ValueError:
                calls = [f"{shape}(a,b)" for shape in _SHAPES]
                raise ValueError(f"expects a number, or {', '.join(calls)}") from None
            return cls("constant", number, number)
        shape, first, last = match.groups()
        try:
            start, end = _number(float(first)), _number(float(last))
        except ValueError:
            raise ValueError(f"{shape} expects two numbers") from None
        if shape == "quarter-cosine" and start > end:
            raise ValueError("quarter-cosine(a,b) needs a <= b: past b the published formula falls")
        return cls(shape, start, end)  # type: ignore[arg-type]

    def at(self, step: float, total: float) -> float:
        """Return the value after ``step`` of ``total`` optimiser steps."""
        if self.shape == "constant" or total <= 0:
            return self.end if self.shape != "constant" else self.start
        done = min(max(step / total, 0.0), 1.0)
        if self.shape == "linear":
            return self.start + (self.end - self.start) * done
        if self.shape == "cosine":
            return self.end + (self.start - self.end) * (1 + math.cos(math.pi * done)) / 2
        return self.end + (self.start - self.end) * max(math.cos(math.pi * done), 0.0)

    @property
    def bounds(self) -> tuple[float, float]:
        """Return the smallest and largest value it can take."""
        return min(self.start, self.end), max(self.start, self.end)

    def __str__(self) -> str:
        """Return the text that parses to this schedule."""
        if self.shape == "constant":
            return _short(self.start)
        return f"{self.shape}({_short(self.start)},{_short(self.end)})"

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: type[Any], handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Let pydantic models have fields of this type."""
        return core_schema.no_info_plain_validator_function(
            cls.parse, serialization=core_schema.plain_serializer_function_ser_schema(_plain)
        )


def _short(value: float) -> str:
    """Return the shortest text that reads back as the same number."""
    text = f"{value:g}"
    return text if float(text) == value else repr(value)


def _number(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError("expects a finite number")
    return float(value)


def _plain(schedule: Schedule) -> float | str:
    return schedule.start if schedule.shape == "constant" else str(schedule)
