"""Schedules: their values at the start, on the way and at the end, and what they can become."""

from __future__ import annotations

import math

import pytest

from cse_core.schedule import CURVES, Schedule
from tests.fixtures.parts import rising

VALUES = {
    "0.3": (0.3, 0.3, 0.3, 0.3, 0.3),
    "linear(0,0.2)": (0.0, 0.05, 0.1, 0.15, 0.2),
    "linear(1,0)": (1.0, 0.75, 0.5, 0.25, 0.0),
    "cosine(0.5,1)": (0.5, 0.5 + 0.25 * (1 - math.sqrt(0.5)), 0.75,
                      0.5 + 0.25 * (1 + math.sqrt(0.5)), 1.0),
    "rising(0,1)": (0.0, 0.5, 1.0, 1.0, 1.0),
}  # fmt: skip


def test_values_at_every_quarter_and_outside() -> None:
    curves = {**CURVES, "rising": rising}
    for text, wanted in VALUES.items():
        schedule = Schedule.parse(text, curves)
        assert [schedule.at(step, 8) for step in (0, 2, 4, 6, 8)] == pytest.approx(wanted), text
        assert (schedule.at(-1, 8), schedule.at(9, 8)) == pytest.approx((wanted[0], wanted[-1]))
        assert schedule.at(0, 0) == pytest.approx(wanted[-1])
        assert schedule.bounds == pytest.approx((min(wanted), max(wanted)))
        assert str(schedule) == text and Schedule.parse(str(schedule), curves) == schedule


def test_what_is_no_schedule() -> None:
    for value in (True, None, "linear(1)", "cosine(a,b)", "nan", math.inf, "linear(0,inf)", "x",
                  "rising(1,0)", "falling(1,0)"):  # fmt: skip
        with pytest.raises(ValueError, match=r"expects|needs a <= b"):
            Schedule.parse(value, {**CURVES, "rising": rising})
