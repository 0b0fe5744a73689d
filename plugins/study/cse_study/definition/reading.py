"""Finding the file of a study and reading it, and the points that its axes make."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from cse_cli.api import Installed, format_value, read_toml
from cse_core.errors import CseError, did_you_mean, raise_all
from cse_core.loading import package_path
from cse_study.definition.printed import FILE as PAPER
from cse_study.definition.printed import Cell, Printed, listed, read_printed
from cse_study.definition.schema import (
    DEFAULT,
    UNTRAINED,
    After,
    Axis,
    Figure,
    Number,
    PaperNumbers,
    Scores,
    Study,
)

FILE = "@file:"
"""Before a path: a file that lies beside the study's."""
RUN = "@run:"
"""Before the name of a run that others start from, or its key; ``/rounds/N`` behind it is the model
after a round."""
MAX_RUNS = 2_000
"""Runs of a study at most: all are composed before the first begins, in half a minute."""
_TABLES: dict[str, Any] = {
    "axes": Axis, "scores": Scores, "paper": PaperNumbers, "figures": Figure, "after": After,
}  # fmt: skip


class Typed(float):
    """A number of a study file, which labels show by its ``text``: ``1e-5`` and not ``1e-05``."""

    def __init__(self, text: str) -> None:
        self.text = text


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
        """The label of the point in tables."""
        return ", ".join(self.labels.values()) or "the run"

    def label_without(self, axes: Collection[str]) -> str:
        """Return the label of the point in tables that leave out some axes."""
        return ", ".join(label for axis, label in self.labels.items() if axis not in axes)

    def value(self, name: str, default: Any = None) -> Any:
        """Return the value in a column or the label on an axis."""
        return self.columns.get(name, self.labels.get(name, default))

    @property
    def name(self) -> str:
        """Return its labels with their axes, as ``--points`` takes them."""
        return "; ".join(f"{axis}={label}" for axis, label in self.labels.items()) or "the run"


@dataclass(frozen=True)
class Definition:
    """A study that was read.

    Its name is ``mocose/table-7``, or that of a user's file without the ending; ``paper`` is the
    citation, empty for such a file. ``printed`` are the paper's tables at the study's source.
    """

    name: str
    study: Study
    points: tuple[Point, ...]
    paper: str = ""
    printed: tuple[Printed, ...] = ()

    @property
    def labels(self) -> list[str]:
        """Return the labels of the points without those of tuned axes."""
        tuned = self.study.tuned
        return list(dict.fromkeys(point.label_without(tuned) for point in self.points))

    @property
    def first_score(self) -> str:
        """Return the score that decides a claim which names none."""
        return next(iter(self.study.scores.shown or self.study.values), "*.test")

    def row(self, label: str) -> str:
        """Return the row of the paper that has the numbers of a point."""
        rows, labels = self.study.paper.rows, self.labels
        return rows[labels.index(label)] if rows and label in labels else label

    def block(self, variant: str = "") -> Printed | None:
        """Return the printed table of an encoder, by default of the one that the study names."""
        known = {table.block: table for table in reversed(self.printed)}
        first = self.printed[0] if self.printed else None
        return known.get(variant) or known.get(self.study.paper.model) or first

    def cell(self, variant: str, label: str, score: str) -> Cell | None:
        """Return what the paper prints of a point, None where it prints nothing."""
        table = self.block(variant)
        return table.cell(self.row(label), score) if table else None


def find_study(name: str, plugins: Installed) -> Definition:
    """Read the study of a name, or a user's own file."""
    known = plugins.studies
    if name in known:
        spec, _ = known[name]
        file = package_path(spec.path, where=f"study {name}")
        return read_study(file, plugins, name=name, paper=spec.paper)
    path = Path(name).expanduser()
    if path.is_dir():
        raise CseError("is a folder", where="study", value=name, hint="name a TOML file")
    if path.suffix == ".toml" or path.is_file():
        if not path.is_file():
            raise CseError("no such file", where="study", value=name)
        return read_study(path, plugins)
    hint = did_you_mean(name, known)
    if not hint.startswith("did"):
        hint = "see cse study --list, or name a TOML file" if known else "name a TOML file"
    raise CseError("no study of this name is installed", where="study", value=name, hint=hint)


def read_study(
    file: Path, plugins: Installed | None = None, *, name: str = "", paper: str = ""
) -> Definition:
    """Read a study file; its mistakes are reported all at once.

    One that extends a study takes its name from the installed plugins.
    """
    label = name and f"study {name}" or str(file)
    table = _table_of(file, label, plugins)
    try:
        study = Study.model_validate(table)
    except ValidationError as error:
        raise_all([_mistake(label, part) for part in _of_one_place(error)])
        raise
    points = points_of(study)
    _check(study, points, label)
    made = Definition(name or file.stem, study, points, paper)
    beside = file.parent / PAPER
    tables = read_printed(beside) if study.source and beside.is_file() else ()
    scale = study.paper.scale
    printed = [table.scaled(scale) for table in tables if table.place == study.source]
    return replace(made, printed=(*_listed(made), *printed))


def _table_of(file: Path, label: str, plugins: Installed | None) -> dict[str, Any]:
    """Read the table of a file; of one with ``extends``, that of the named study with its places.

    What a paper prints, claims and figures are of the other study's own points: they are left out.
    """
    table: dict[str, Any] = _with_files(read_toml(file, label, Typed), file, label)
    if "extends" not in table:
        return table
    name, places = str(table["extends"]), table.get("places")
    studies = {} if plugins is None else plugins.studies
    path = file.parent / name
    if name in studies:
        path = package_path(studies[name][0].path, where=f"study {name}")
    if not path.is_file():
        hint = did_you_mean(name, studies) if studies else None
        what = "no study of this name is installed, and no file beside this one has it"
        raise CseError(what, where=f"{label}: extends", value=name, hint=hint)
    if wrong := table.keys() - {"extends", "summary", "places"}:
        hint = "beside extends stand summary, and a table [[places]] for each new place"
        raise CseError("is that of the other study", where=label, value=min(wrong), hint=hint)
    base: dict[str, Any] = _with_files(read_toml(path, f"study {name}", Typed), path, name)
    axes = base.get("axes")
    axes = [axis for axis in axes if isinstance(axis, dict)] if isinstance(axes, list) else []
    axis = next((axis for axis in axes if isinstance(axis.get("places"), list)), None)
    if axis is None:
        what = "the study has no axis of [[axes.places]] to add to"
        raise CseError(what, where=f"{label}: extends", value=name, hint="copy its file instead")
    if not (isinstance(places, list) and places):
        raise CseError("adds no place", where=label, hint="write a table [[places]] for each")
    for at, place in enumerate(places if axis.get("columns") else (), 1):
        own = place.pop("columns", {}) if isinstance(place, dict) else {}
        for column, cells in axis["columns"].items():
            if not isinstance(own, dict) or column not in own:
                what = f"lacks a value for the column {column!r} of {name}"
                hint = f"columns = {{ {column} = {json.dumps(cells[-1])} }} is that of the last one"
                raise CseError(what, where=f"{label}: places.{at}", hint=hint)
            cells.append(own[column])
    axis["places"] = [*axis["places"], *places]
    kept = {key: value for key, value in base.items() if key not in ("paper", "claims", "figures")}
    return {**kept, "summary": table.get("summary", f"Places added to {name}"), "source": ""}


def _listed(definition: Definition) -> Iterator[Printed]:
    """Yield the numbers that the study's own file has as tables, one for each encoder."""
    study = definition.study
    by_block: dict[str, dict[str, tuple[list[Number], list[Number]]]] = {}
    for block, score, numbers, deviations in study.paper.lists(definition.first_score):
        by_block.setdefault(block, {})[score] = (numbers, deviations or [None] * len(numbers))
    rows = [definition.row(label) for label in definition.labels]
    for block, numbers_ in by_block.items():
        yield listed(study.source, block, rows, numbers_)


def _with_files(value: Any, file: Path, label: str) -> Any:
    """Return a value of a study file with the paths of files that lie beside it."""

    def path(match: re.Match[str]) -> str:
        beside = file.parent / match[1]
        if not beside.is_file():
            hint = f"it is looked for in {file.parent}"
            raise CseError("no such file", where=label, value=match[0], hint=hint)
        return str(beside.absolute())

    if isinstance(value, str):
        return re.sub(rf"{FILE}(\S+)", path, value)
    if isinstance(value, Mapping):
        return {key: _with_files(item, file, label) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_files(item, file, label) for item in value]
    return value


def _check(study: Study, points: tuple[Point, ...], label: str) -> None:
    """Refuse what a file says of its own points and runs and does not fit them, all at once."""
    labels = [point.label_without(study.tuned) for point in points]
    no_point = "no point has this label"
    named: list[tuple[str, str, Iterable[str], str]] = [
        (key, getattr(study, key) or labels[0], labels, no_point)
        for key in ("baseline", "start", "without")
    ]
    if isinstance(study.scores.smallest, Mapping):
        lacks = "scores.shown lacks it"
        named += [("scores.smallest", name, study.scores.shown, lacks)
                  for name in study.scores.smallest]  # fmt: skip
    for at, claim in enumerate(study.claims):
        shown = study.scores.shown or [""]
        named += [
            (f"claims.{at}.better", claim.better, labels, no_point),
            (f"claims.{at}.than", claim.than, labels, no_point),
            (f"claims.{at}.score", claim.score or shown[0], shown, "scores.shown lacks it"),
        ]
    parts = dict.fromkeys(name for axis in study.axes for name in (axis.called, *axis.columns))
    for at, figure in enumerate(study.figures):
        x = figure.x if figure.type in ("curve", "box") else ""  # a scatter's may be a number
        of_figure = {"x": {x} - {""}, "lines": {figure.lines} - {""}, "where": figure.where}
        named += [(f"figures.{at + 1}.{key}", name, parts, "no axis or column has this name")
                  for key, names in of_figure.items() for name in names]  # fmt: skip
    settings = [study.settings, *(point.settings for point in points), *study.runs.values()]
    runs = (text.removeprefix(RUN) for text in texts_of(settings) if text.startswith(RUN))
    lacking = "no such run to start from"
    named += [("runs", run.partition("/")[0], study.runs, lacking) for run in runs]
    errors = [
        CseError(what, where=f"{label}: {where}", value=value,
                 hint=did_you_mean(value, known) if known else f"add a table [runs.{value}]")
        for where, value, known, what in named if value not in known
    ]  # fmt: skip
    for point in points:
        paths = [path for path in point.settings if path == "pool" or path.startswith("model.")]
        if point.settings.get("recipe") == UNTRAINED and paths:
            what = f"{point.name} is scored as it is, so {paths[0]} would change nothing"
            errors.append(CseError(what, where=label, hint="[scores.options] has pooling and more"))
    count = len({*labels})
    for model, score, *lists in study.paper.lists(""):
        for key, numbers in zip(("numbers", "deviations"), lists, strict=True):
            if numbers and len(numbers) != count:
                hint = 'one for each point, the last axis fastest, "-" where the paper prints none'
                where = ".".join(filter(None, (f"{label}: paper.{key}", model, score)))
                errors.append(CseError(f"{len(numbers)} numbers for {count} points", where=where,
                                       hint=hint))  # fmt: skip
    if study.paper.rows and len(study.paper.rows) != count:
        what = f"{len(study.paper.rows)} rows for {count} points"
        errors.append(CseError(what, where=f"{label}: paper.rows", hint="name one for each point"))
    raise_all(errors)


def texts_of(value: Any) -> Iterator[str]:
    """Yield every text of nested settings."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from texts_of(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from texts_of(item)


def _of_one_place(error: ValidationError) -> Iterator[ErrorDetails]:
    """Yield one mistake of each place: of several allowed forms that which comes furthest."""
    kept = {_place(details): details for details in reversed(error.errors(include_url=False))}
    for place, details in reversed(kept.items()):
        if not any(other.startswith(f"{place}.") for other in kept):
            yield details


def _place(details: ErrorDetails) -> str:
    """Return a place of a file, ``axes.2.values``; numbers count from 1."""
    steps = [step for step in details["loc"] if not re.search(r"[\[(]", str(step))]
    return ".".join(str(step + 1) if isinstance(step, int) else step for step in steps)


def _mistake(label: str, details: ErrorDetails) -> CseError:
    """Turn the details of pydantic on one place of a file into an error of one line."""
    path = _place(details)
    if details["type"] == "extra_forbidden":
        model = _TABLES.get(path.split(".")[0], Study) if "." in path else Study
        hint = did_you_mean(path.rpartition(".")[2], model.model_fields)
        return CseError(f"a study has no key {path!r}", where=label, hint=hint)
    where = f"{label}: {path}" if path else label
    if details["type"] == "value_error":
        return CseError(str(details["ctx"]["error"]), where=where)
    value = None if isinstance(details["input"], Mapping) else details["input"]
    return CseError(details["msg"][:1].lower() + details["msg"][1:], where=where, value=value)


def points_of(study: Study) -> tuple[Point, ...]:
    """Return the points of a study: one without settings where it has no axes."""
    check_count("points", prod(axis.size for axis in study.axes), "shorten its axes")
    places = [range(axis.size) for axis in study.axes]
    names = [labels_of(axis) for axis in study.axes]
    points = []
    for number, place in enumerate(product(*places), 1):
        labels: dict[str, str] = {}
        settings: dict[str, Any] = {}
        columns: dict[str, Any] = {}
        for axis, of_axis, at in zip(study.axes, names, place, strict=True):
            labels[axis.called] = of_axis[at]
            values = {path: column[at] for path, column in axis.values.items()}
            settings |= {path: value for path, value in values.items() if value != DEFAULT}
            columns |= {name: column[at] for name, column in axis.columns.items()}
        points.append(Point(number, labels, settings, columns))
    return tuple(points)


def check_count(what: str, count: int, hint: str) -> None:
    """Refuse more points, seeds or runs than a study can have."""
    if count > MAX_RUNS:
        what = f"{count:,} {what}, and a study has at most {MAX_RUNS:,}"
        raise CseError(what, where="cse study", hint=hint)


def labels_of(axis: Axis) -> list[str]:
    """Return the label of each place of an axis: its own, or made of the values."""
    if axis.labels is not None:
        return axis.labels
    rows = zip(*axis.values.values(), strict=True)
    labels = [", ".join(_plain(value) for value in row) for row in rows]
    twice = {label for label, count in Counter(labels).items() if count > 1}
    return [f"{label} ({at})" if label in twice else label for at, label in enumerate(labels, 1)]


def _plain(value: object) -> str:
    if isinstance(value, list):
        return " ".join(map(_plain, value)) or "-"
    return value.text if isinstance(value, Typed) else format_value(value).removeprefix("@")


def chosen_points(points: Sequence[Point], wanted: Sequence[str]) -> tuple[Point, ...]:
    """Return the points that ``--points`` chooses: ``k=8,16`` of an axis, or numbers.

    Several choices are all met, but numbers, which add to each other.
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


def _labels(text: str, known: set[str]) -> list[str]:
    """Return the labels that a text names: one, in which commas may stand, or several."""
    if text.strip() in known:
        return [text.strip()]
    labels = [label.strip() for label in text.split(",")]
    for label in labels:
        if label not in known:
            hint = did_you_mean(label, known)
            if not hint.startswith("did"):
                hint = f"known: {'; '.join(sorted(known))}"
            what = "the axis has no such place"
            raise CseError(what, where="--points", value=label, hint=hint)
    return labels


def _numbers(text: str, count: int) -> set[int]:
    chosen: set[int] = set()
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
        chosen |= set(numbers)
    return chosen
