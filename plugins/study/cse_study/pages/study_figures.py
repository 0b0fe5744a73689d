"""The figures of a study's file, each drawn from its results."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any

from cse_study.definition.points import Point
from cse_study.definition.schema import Figure
from cse_study.measures.item_files import Cosines
from cse_study.pages.charts import bars_picture, box_picture, scatter_picture
from cse_study.pages.diagram import plan_picture
from cse_study.pages.drawing import Picture, Series, plain_number
from cse_study.pages.gold_pictures import GROUPS, by_set, gold_densities, gold_scatters
from cse_study.pages.grouping import Group, find_key, over_steps
from cse_study.pages.lines import lines_picture
from cse_study.pages.run_files import Run
from cse_study.pages.run_pictures import spectra_in, spectrum_picture
from cse_study.pages.study_results import Results
from cse_study.results.rows import Row
from cse_study.results.table import Line

_FIRST = "Of the first seed of each point."


def _curve(results: Results, figure: Figure) -> list[Picture]:
    """Draw each shown score along an axis or a column, a line for each place of the others."""
    wanted = [figure.y] if isinstance(figure.y, str) and figure.y else list(figure.y)
    tables = {name: lines for name, lines in results.tables.items() if not wanted or name in wanted}
    axes = [axis.called for axis in results.definition.study.axes]
    x = figure.x or (axes[0] if axes else "")
    panels: dict[str, list[Series]] = {}
    for name, lines in (tables or results.tables).items():
        by_line: dict[str, list[Line]] = {}
        for line in lines:
            if not _inside(line.point, figure):
                continue
            by_line.setdefault(_line_of(line.point, figure, x), []).append(line)
        series = []
        for label, each in by_line.items():
            each = sorted(each, key=lambda line: _order(line.point, x))
            places = [_place(line.point, x) for line in each]
            series.append(Series(label, places, [line.mean for line in each],
                                 [line.deviation for line in each],
                                 [line.seeds for line in each]))  # fmt: skip
            papers = [line.paper for line in each]
            if any(number is not None for number in papers):
                spread = [line.paper_deviation for line in each]
                words = f"paper, {label}" if label else "paper"
                series.append(Series(words, places, papers, spread, paper=True))
        names = dict.fromkeys(line.score for line in lines if line.seeds)
        panels[next(iter(names), name)] = series
    title = figure.title or f"{', '.join(panels)} by {x or 'point'}"
    return _drawn(lines_picture(title, panels, x or "point"))


def _inside(point: Point, figure: Figure) -> bool:
    """Tell whether a figure shows a point: its key ``where`` has the values of some columns."""
    where: Mapping[str, Sequence[Any]] = (figure.model_extra or {}).get("where", {})
    return all(_value(point, name) in values for name, values in where.items())


def _line_of(point: Point, figure: Figure, x: str) -> str:
    """Return the name of the line that a point belongs to."""
    if figure.lines:
        return _text(_value(point, figure.lines))
    others = [label for axis, label in point.labels.items() if axis != x]
    # Columns stand on an axis: its labels name no line.
    return ", ".join(others) if x in point.labels else ""


def _value(point: Point, name: str) -> Any:
    """Return what a point has on an axis or in a column."""
    if name in point.columns:
        return point.columns[name]
    return point.labels.get(name, name)


def _place(point: Point, name: str) -> Any:
    """Return where a point stands on an axis, a number where its label is one."""
    value = _value(point, name)
    number = number_of(value)
    return value if number is None else number


def number_of(value: Any) -> float | int | None:
    """Return a value as a number, None where it is not one; a percent sign may stand behind it."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value
    try:
        number = float(str(value).rstrip("%"))
    except ValueError:
        return None
    if not isfinite(number):
        return None
    return int(number) if number.is_integer() else number


def _order(point: Point, name: str) -> tuple[float, int]:
    number = number_of(_value(point, name))
    return (0.0 if number is None else float(number), point.number)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else plain_number(value)


def _drawn(*pictures: Picture | None) -> list[Picture]:
    return [picture for picture in pictures if picture is not None]


def _label(results: Results, point: Point, figure: Figure) -> str:
    """Return the name of a point in a figure: its place on the figure's axis, if that is enough."""
    places = [_text(_value(each, figure.lines)) for each in results.points if figure.lines]
    own = _text(_value(point, figure.lines)) if figure.lines else ""
    return own if places.count(own) == 1 else point.label


def _box(results: Results, figure: Figure) -> list[Picture]:
    found = []
    for name, lines in results.tables.items():
        groups: dict[str, list[float]] = {}
        for line in lines:
            place = _text(_value(line.point, figure.x)) if figure.x else line.point.label
            # A model without training is one run, whatever the seed.
            for row in {row.key: row for row in results.of_point(line.point)}.values():
                value = row.scores.get(line.score)
                if value is not None:
                    groups.setdefault(place, []).append(value)
        title = figure.title or f"{name}: seeds of each {figure.x or 'point'}"
        shown = next((line.score for line in lines if line.seeds), name)
        found += _drawn(box_picture(title, groups, figure.x or "point", shown))
    return found


def _trace(results: Results, figure: Figure) -> list[Picture]:
    """Draw keys of metrics over steps, a line for each place of an axis."""
    wanted = [figure.y] if isinstance(figure.y, str) else list(figure.y)
    panels: dict[str, list[Series]] = {}
    groups = []
    for point in results.points:
        group = results.group(point)
        if group is not None:
            label = _label(results, point, figure)
            groups.append(Group("" if len(results.points) == 1 else label, group.runs))
    for name in filter(None, wanted or ["loss"]):
        panels[name] = over_steps(groups, _finder(name))
    return _drawn(lines_picture(figure.title or f"{', '.join(panels)} over steps", panels, "step"))


def _finder(name: str) -> Callable[[Run], str | None]:
    return lambda run: find_key(run, name)


def _scatter(results: Results, figure: Figure) -> list[Picture]:
    """Draw pairs by gold score and cosine, or points by two of their numbers."""
    if (figure.x, figure.y) == ("gold", "cosine"):
        return gold_scatters(_pairs_by_set(results, figure), figure.title, _FIRST)
    names = [figure.y] if isinstance(figure.y, str) else list(figure.y)
    groups: dict[str, list[tuple[float, float, str]]] = {}
    ylabel = ""
    for name in [name for name in names if name] or list(results.tables):
        for point in results.points:
            rows = results.of_point(point)
            y, found_y = _mean_of(results, rows, point, name)
            x, _ = _mean_of(results, rows, point, figure.x)
            if x is None or y is None:
                continue
            ylabel = found_y
            label = _text(_value(point, figure.lines)) if figure.lines else found_y
            groups.setdefault(label, []).append((x, y, f"{point.label} (n = {len(rows)})"))
    title = figure.title or f"{ylabel} by {figure.x}"
    return _drawn(scatter_picture(title, groups, figure.x, ylabel))


def _mean_of(
    results: Results, rows: Sequence[Row], point: Point, name: str
) -> tuple[float | None, str]:
    """Return a number of a point, the mean over its seeds, with its full name."""
    if name in point.columns or name in point.labels:
        number = number_of(_value(point, name))
        return (None if number is None else float(number)), name
    for line in results.tables.get(name, ()):
        if line.point.number == point.number:
            return line.mean, line.score
    values = {}
    for row in rows:
        # The number of a test set comes before that of a dev set.
        keys = sorted((key for key in row.scores if key == name or key.endswith(f".{name}")),
                      key=lambda key: ".dev." in key)  # fmt: skip
        if keys:
            values[row.seed] = (row.scores[keys[0]], keys[0])
    if not values:
        return None, name
    return statistics.fmean(v for v, _ in values.values()), next(iter(values.values()))[1]


def _pairs_by_set(results: Results, figure: Figure) -> dict[str, Cosines]:
    """Return gold scores and cosines by set and place, of the first seed of each point."""
    return by_set(
        (_label(results, point, figure), results.cosines(row))
        for point in results.points
        for row in results.of_point(point)[:1]
    )


def _density(results: Results, figure: Figure) -> list[Picture]:
    """Draw the density of cosines in groups of gold scores, a panel for each point."""
    after = results.definition.study.after
    count = int((after.model_extra or {}).get("groups", GROUPS)) if after else GROUPS
    return gold_densities(_pairs_by_set(results, figure), count, figure.title, _FIRST)


def _spectrum(results: Results, figure: Figure) -> list[Picture]:
    spectra: dict[str, dict[str, Sequence[float]]] = {}
    for point in results.points:
        label = _label(results, point, figure)
        for row in results.of_point(point)[:1]:
            for name, values in spectra_in({"results": row.results}):
                spectra.setdefault(name, {})[label] = values
    return _drawn(spectrum_picture(spectra))


def _histogram(results: Results, figure: Figure) -> list[Picture]:
    """Draw numbers side by side, the paper's as bars of their own."""
    names = [figure.y] if isinstance(figure.y, str) else list(figure.y)
    names = [name for name in names if name] or list(results.tables)
    groups: dict[str, dict[str, float]] = {}
    for name in names:
        for line in results.tables.get(name, ()):
            if line.mean is not None:
                groups.setdefault(line.point.label, {})[name] = line.mean
            if line.paper is not None:
                label = "paper" if len(results.points) == 1 else f"paper, {line.point.label}"
                groups.setdefault(label, {})[name] = line.paper
    study = results.definition.study
    return _drawn(bars_picture(figure.title or study.summary, groups, figure.x or study.source,
                               study.paper.metric or "number"))  # fmt: skip


def _diagram(results: Results, figure: Figure) -> list[Picture]:
    """Draw the plan that a command printed, one for each point."""
    found = []
    for point in results.points:
        for row in results.of_point(point)[:1]:
            if {"parts", "views", "passes", "feeds"} <= row.results.keys():
                title = figure.title or f"Plan of {row.results.get('recipe') or point.label}"
                found.append(plan_picture(title, row.results))
    return found


def _no_picture(results: Results, figure: Figure) -> list[Picture]:
    return []


FIGURES: Mapping[str, Callable[[Results, Figure], list[Picture]]] = {
    "curve": _curve,
    "table": _no_picture,
    "box": _box,
    "trace": _trace,
    "scatter": _scatter,
    "density": _density,
    "spectrum": _spectrum,
    "histogram": _histogram,
    "diagram": _diagram,
}
