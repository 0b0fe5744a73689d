"""The page of a study: its table with the paper's numbers, and the figures of its file."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

from cse_cli.api import code, plain
from cse_core.errors import CseError
from cse_study.definition.reading import Point
from cse_study.definition.schema import Figure
from cse_study.measures import read_cosines
from cse_study.pages.figures import (
    Picture,
    Series,
    box_picture,
    graph_picture,
    lines_picture,
    scatter_picture,
)
from cse_study.pages.page import Page
from cse_study.pages.run_page import spectrum_picture
from cse_study.pages.runs import Group, Run, over_steps
from cse_study.results.beside import beside_paper
from cse_study.results.rows import Row, at
from cse_study.results.table import Line, Results, Table, plain_number

_FIRST = "Of the first seed of each point."
_MAX_ROWS = 60
"""Rows of a table of texts."""
_LOG_PLACES = 16
"""Ratio of the largest to the smallest place of a curve from which its axis is logarithmic."""


def study_page(results: Results, command: str) -> Page:
    """Return the page of a study that a command writes."""
    definition, study = results.definition, results.definition.study
    page = Page(study.summary, [f"Written by {code(command)}."])
    page.lead += [f"{definition.paper}, {study.source}."] if definition.paper else []
    page.lead += [study.note.strip()] if study.note else []
    if len(results.done) < len(results.rows):
        page.lead.append(
            f"{len(results.done)} of {len(results.rows)} rows are finished; "
            "what is missing is left out."
        )
    for figure in study.figures:
        drawn = FIGURES[figure.type](results, figure) if results.done else []
        page.add(*drawn)
        page.tables += text_tables(results, figure)
        if not any(drawn) and figure.type != "table":
            what = code(figure.title or figure.type)
            page.notes.append(f"There are no numbers for the figure {what} yet.")
    page.tables += results.layout(page=True) + beside_paper(results)
    page.notes += map(plain, results.notes)
    warned: dict[str, dict[str, None]] = {}
    for row in results.done:
        for line in row.warnings:
            warned.setdefault(line, {})[row.point.label] = None
    page.notes += [f"Warning ({', '.join(map(plain, labels))}): {plain(line)}"
                   for line, labels in warned.items()]  # fmt: skip
    page.notes.append(plain(results.ran))
    return page


def _groups(results: Results, figure: Figure) -> list[Group]:
    """Return the runs of each point that has some here, by its label in a figure."""
    groups = []
    for point in results.points:
        runs = []
        for row in results.of_point(point):
            try:
                runs.append(Run(results.folder.run(row.key)))
            except CseError:  # untrained, or made elsewhere
                continue
        if runs:
            groups.append(Group(_label(results, point, figure), tuple(runs)))
    return groups


def text_tables(results: Results, figure: Figure) -> list[Table]:
    """Return a table of each list that a figure shows, of the first seed of each point.

    Its key ``show`` has the lists' paths in the output, with dots; one that an output does not
    have is left out.
    """
    shown = []
    for point, row in _first_rows(results):
        for path in figure.show:
            values = at(row.results, path)
            if isinstance(values, list) and values:
                words = f"{point.label}: {path}" if point.labels else path
                if len(values) > _MAX_ROWS:
                    words += f", {_MAX_ROWS} of {len(values)}"
                tables = [item if isinstance(item, Mapping) else {"": item}
                          for item in values[:_MAX_ROWS]]  # fmt: skip
                heads = list(dict.fromkeys(name for item in tables for name in item))
                rows = [[str(number), *(_cell(item.get(name)) for name in heads)]
                        for number, item in enumerate(tables)]  # fmt: skip
                shown.append(Table(["", *heads], rows, title=words))
    return shown


def _cell(value: Any, inner: bool = False) -> str:
    """Return a value as a text; items of a list are separated, those of lists in it by commas."""
    if isinstance(value, list):
        return (", " if inner else "; ").join(_cell(item, inner=True) for item in value)
    return plain_number(value)


def number_of(value: Any) -> float | int | None:
    """Return a value as a number, None where it is not one; a percent sign may stand behind it."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    try:
        number = float(str(value).rstrip("%"))
    except ValueError:
        return None
    if not isfinite(number):
        return None
    return int(number) if number.is_integer() else number


def _label(results: Results, point: Point, figure: Figure) -> str:
    """Return the name of a point in a figure: its place on the figure's axis, if that is enough."""
    if not figure.lines:
        return point.label
    places = [str(other.value(figure.lines, "")) for other in results.points]
    place = plain_number(point.value(figure.lines, ""))
    return place if places.count(str(point.value(figure.lines, ""))) == 1 else point.label


def _first_rows(results: Results) -> Iterator[tuple[Point, Row]]:
    """Yield each point with the first of its finished rows."""
    for point in results.points:
        for row in results.of_point(point)[:1]:
            yield point, row


def _curve(results: Results, figure: Figure) -> list[Picture | None]:
    """Draw each shown score along an axis or a column, a line for each place of the others."""
    axes = [axis.called for axis in results.definition.study.axes]
    x = figure.x or (axes[0] if axes else "")

    def place(line: Line) -> Any:
        value = line.point.value(x, x)
        number = number_of(value)
        return value if number is None else number

    def line_of(point: Point) -> str:
        if figure.lines:
            return plain_number(point.value(figure.lines, figure.lines))
        # Columns stand on an axis: its labels name no line.
        return point.label_without([x]) if x in point.labels else ""

    names = [name for name in figure.y if name in results.tables]
    panels: dict[str, list[Series]] = {}
    for name in names or list(results.tables):
        by_line: dict[str, list[Line]] = {}
        for line in results.tables[name]:
            if all(
                line.point.value(column, column) in values
                for column, values in figure.where.items()
            ):
                by_line.setdefault(line_of(line.point), []).append(line)
        series = []
        for label, lines in by_line.items():
            lines.sort(key=lambda line: number_of(place(line)) or 0.0)
            places = list(map(place, lines))
            series.append(Series(label, places, [line.mean for line in lines],
                                 [line.deviation for line in lines],
                                 [line.seeds for line in lines]))  # fmt: skip
            series.append(Series(label, places, [line.paper for line in lines],
                                 [line.paper_deviation for line in lines], paper=True))  # fmt: skip
        score = next((line.score for line in results.tables[name] if line.seeds), name)
        panels[score] = series
    places = [x for part in panels.values() for series in part for x in series.x]
    log = not any(isinstance(x, str) for x in places) and min(places, default=0) > 0
    log = log and max(places) / min(places) >= _LOG_PLACES
    title = figure.title or f"{', '.join(panels)} by {x or 'point'}"
    return [lines_picture(title, panels, x or "point", xscale="log" if log else "linear")]


def _box(results: Results, figure: Figure) -> list[Picture | None]:
    boxes = []
    for name, lines in results.tables.items():
        groups: dict[str, list[float]] = {}
        for line in lines:
            place = plain_number(line.point.value(figure.x, line.point.label))
            # A model without training is one run, whatever the seed.
            for row in {row.key: row for row in results.of_point(line.point)}.values():
                if line.score in row.scores:
                    groups.setdefault(place, []).append(row.scores[line.score])
        title = figure.title or f"{name}: seeds of each {figure.x or 'point'}"
        score = next((line.score for line in lines if line.seeds), name)
        boxes.append(box_picture(title, groups, figure.x or "point", score))
    return boxes


def _trace(results: Results, figure: Figure) -> list[Picture | None]:
    """Draw keys of metrics over steps, a line for each place of an axis."""
    groups = _groups(results, figure)
    if len(results.points) == 1:
        groups = [Group("", group.runs) for group in groups]
    panels = {name: over_steps(groups, name) for name in figure.y or ["loss"]}
    title = figure.title or f"{', '.join(panels)} over steps"
    return [lines_picture(title, panels, "step")]


def _scatter(results: Results, figure: Figure) -> list[Picture | None]:
    """Draw pairs by gold score and cosine, or points by two of their numbers."""
    if (figure.x, figure.y) == ("gold", ["cosine"]):
        return _gold_scatters(results, figure)
    groups: dict[str, list[tuple[float, float, str]]] = {}
    ylabel = ""
    for name in figure.y or results.tables:
        for point in results.points:
            rows = results.of_point(point)
            y, found_y = _mean_of(results, rows, point, name)
            x, _ = _mean_of(results, rows, point, figure.x)
            if x is not None and y is not None:
                ylabel = found_y
                label = plain_number(point.value(figure.lines, found_y))
                groups.setdefault(label, []).append((x, y, f"{point.label} (n = {len(rows)})"))
    title = figure.title or f"{ylabel} by {figure.x}"
    return [scatter_picture(title, groups, figure.x, ylabel)]


def _mean_of(
    results: Results, rows: Sequence[Row], point: Point, name: str
) -> tuple[float | None, str]:
    """Return a number of a point, the mean over its seeds, with its full name."""
    if name in point.columns or name in point.labels:
        return number_of(point.value(name)), name
    for line in results.tables.get(name, ()):
        if line.point.number == point.number:
            return line.mean, line.score
    values, full = {}, name
    for row in rows:
        # The number of a test set comes before that of a dev set.
        keys = sorted((key for key in row.scores if key == name or key.endswith(f".{name}")),
                      key=lambda key: ".dev." in key)  # fmt: skip
        if keys:
            values[row.seed], full = row.scores[keys[0]], keys[0]
    return (statistics.fmean(values.values()) if values else None), full


def _gold_scatters(results: Results, figure: Figure) -> list[Picture | None]:
    """Draw the pairs of each set by gold score and cosine, of the first seed of each point."""
    if results.scoring is None:
        return []
    sets: dict[str, dict[str, list[tuple[float, float, str]]]] = {}
    for point, row in _first_rows(results):
        file = results.folder.scores(row.key, f"{results.scoring.key}.tsv")
        for name, (golds, cosines) in read_cosines(file).items():
            drawn = [(gold, cosine, "") for gold, cosine in zip(golds, cosines, strict=True)]
            sets.setdefault(name, {})[_label(results, point, figure)] = drawn
    return [
        scatter_picture(
            figure.title or f"Cosine by gold score: {name}", groups, "gold score", "cosine", _FIRST
        )
        for name, groups in sets.items()
    ]


def _spectrum(results: Results, figure: Figure) -> list[Picture | None]:
    spectra = [(_label(results, point, figure), {"results": row.results})
             for point, row in _first_rows(results)]  # fmt: skip
    return [spectrum_picture(spectra)]


def _graph(results: Results, figure: Figure) -> list[Picture | None]:
    """Draw the lists ``similarities``, ``edges`` and ``clusters`` of each point's output."""
    graphs = []
    for point, row in _first_rows(results):
        said = row.results
        weights = {(a, b): weight for a, b, weight in said.get("similarities", ())}
        kept = [(a, b) for a, b in said.get("edges", ())]
        title = figure.title or ", ".join(filter(None, ("Graph", *point.labels.values())))
        graphs.append(graph_picture(title, weights, kept, said.get("clusters", ())))
    return graphs


FIGURES: Mapping[str, Callable[[Results, Figure], list[Picture | None]]] = {
    "curve": _curve,
    "table": lambda results, figure: [],
    "box": _box,
    "trace": _trace,
    "scatter": _scatter,
    "spectrum": _spectrum,
    "graph": _graph,
}
