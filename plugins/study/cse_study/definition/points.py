"""From axes to points: crossed with each other, the lists inside one axis zipped."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from cse_core.errors import CseError, did_you_mean
from cse_core.recipes.option_types import plain
from cse_study.definition.schema import DEFAULT, Axis, Study


@dataclass(frozen=True)
class Point:
    """One setting of all axes.

    Attributes:
        number: Its place among the points of the file, from 1.
        labels: The label on each axis, by the axis' name.
        settings: What the axes set, over the study's own settings or arguments.
        columns: What tables and figures show of it beside the labels.
    """

    number: int
    labels: Mapping[str, str]
    settings: Mapping[str, Any]
    columns: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Return what tables call it."""
        return ", ".join(self.labels.values()) or "the run"

    def label_without(self, axes: Collection[str]) -> str:
        """Return what tables call it where some axes are left out."""
        return ", ".join(label for axis, label in self.labels.items() if axis not in axes)

    def value(self, name: str, default: Any = None) -> Any:
        """Return what it has in a column or on an axis."""
        return self.columns.get(name, self.labels.get(name, default))

    @property
    def name(self) -> str:
        """Return its labels with their axes, as ``--points`` takes them."""
        return "; ".join(f"{axis}={label}" for axis, label in self.labels.items()) or "the run"


def points_of(study: Study) -> tuple[Point, ...]:
    """Return the points of a study: one without settings where it has no axes."""
    places = [range(axis.size) for axis in study.axes]
    found = []
    for number, place in enumerate(product(*places), 1):
        labels: dict[str, str] = {}
        settings: dict[str, Any] = {}
        columns: dict[str, Any] = {}
        for axis, at in zip(study.axes, place, strict=True):
            labels[axis.called] = labels_of(axis)[at]
            values = {path: each[at] for path, each in axis.values.items()}
            settings |= {path: value for path, value in values.items() if value != DEFAULT}
            columns |= {name: each[at] for name, each in axis.columns.items()}
        found.append(Point(number, labels, settings, columns))
    return tuple(found)


def labels_of(axis: Axis) -> list[str]:
    """Return the label of each place of an axis: its own, or made of the values."""
    if axis.labels is not None:
        return axis.labels
    rows = zip(*axis.values.values(), strict=True)
    labels = [", ".join(_plain(value) for value in row) for row in rows]
    twice = {label for label in labels if labels.count(label) > 1}
    return [f"{label} ({at})" if label in twice else label for at, label in enumerate(labels, 1)]


def _plain(value: object) -> str:
    if isinstance(value, list):
        return " ".join(map(plain, value)) or "-"
    return plain(value).removeprefix("@")


def chosen_points(points: Sequence[Point], wanted: Sequence[str]) -> tuple[Point, ...]:
    """Return the points that ``--points`` chooses: ``k=8,16`` of an axis, or numbers.

    Several choices are all met, but numbers, which add to each other.

    Raises:
        CseError: If an axis or a label is unknown.
    """
    numbers: set[int] = set()
    of_axes: dict[str, set[str]] = {}
    for text in wanted:
        axis, equals, rest = text.partition("=")
        if not equals:
            numbers |= _numbers(text, len(points))
            continue
        known = {point.labels[axis] for point in points if axis in point.labels}
        if not known:
            axes = list(points[0].labels)
            hint = did_you_mean(axis, axes) if axes else "this study has one point"
            raise CseError("the study has no axis of this name", where="--points", value=axis,
                           hint=hint)  # fmt: skip
        of_axes.setdefault(axis, set()).update(_labels(rest, known))
    return tuple(
        point
        for point in points
        if (not numbers or point.number in numbers)
        and all(point.labels[axis] in labels for axis, labels in of_axes.items())
    )


def ranges(points: Sequence[Point]) -> str:
    """Return the numbers of some points as ``--points`` takes them: ``1,3-5``."""
    found: list[list[int]] = []
    for number in sorted(point.number for point in points):
        if found and number == found[-1][-1] + 1:
            found[-1][1:] = [number]
        else:
            found.append([number])
    return ",".join("-".join(map(str, each)) for each in found)


def _labels(text: str, known: set[str]) -> list[str]:
    """Return the labels that a text names: one, in which commas may stand, or several."""
    if text.strip() in known:
        return [text.strip()]
    found = [label.strip() for label in text.split(",")]
    for label in found:
        if label not in known:
            hint = did_you_mean(label, known)
            if not hint.startswith("did"):
                hint = f"known: {'; '.join(sorted(known))}"
            what = "the axis has no such place"
            raise CseError(what, where="--points", value=label, hint=hint)
    return found


def _numbers(text: str, count: int) -> set[int]:
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        try:
            numbers = range(int(first), int(last if dash else first) + 1)
        except ValueError:
            hint = "write AXIS=LABEL,LABEL, or numbers of points: 1,3-5"
            raise CseError("chooses no point", where="--points", value=text, hint=hint) from None
        if not numbers or numbers[0] < 1 or numbers[-1] > count:
            what = f"there are points 1 to {count}"
            hint = "write the lower number first" if not numbers else "see them with --dry-run"
            raise CseError(what, where="--points", value=part, hint=hint)
        found |= set(numbers)
    return found
