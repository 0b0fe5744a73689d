"""Pictures of lines: numbers over steps, or along an axis."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

from cse_study.pages.drawing import (
    HEIGHT,
    Look,
    Picture,
    Series,
    in_picture,
    name_lines,
    new_figure,
    numeric,
    plain_number,
    plain_spread,
    svg_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_MARKERS = 12
_WIDE = 26
"""Letters of a name beside one of several panels, which are low."""


def lines_picture(
    title: str,
    panels: Mapping[str, Sequence[Series]],
    xlabel: str,
    *,
    log: bool = False,
    caption: str = "",
) -> Picture | None:
    """Draw lines, a panel for each quantity; None where there is nothing to draw.

    Args:
        title: Of the picture.
        panels: Series by the name of their quantity.
        xlabel: What the places are.
        log: Whether quantities have a logarithmic axis.
        caption: Below the picture.
    """
    panels = {name: found for name, each in panels.items() if (found := _drawable(each))}
    if not panels:
        return None
    figure, axes = new_figure(len(panels), height=HEIGHT if len(panels) == 1 else 2.6)
    every = [series for each in panels.values() for series in each]
    own = list(dict.fromkeys(_own(series) for series in every))
    # A paper's numbers have the colour of those beside them, and hollow marks.
    looks = {series.label: Look.of(own.index(_own(series))) for series in every}
    for here, (name, each) in zip(axes, panels.items(), strict=True):
        _lines(here, each, looks, log=log)
        here.set_ylabel(fill(in_picture(name), _WIDE, break_long_words=False))
        if here is axes[-1]:
            here.set_xlabel(xlabel)
    figure.subplots_adjust(hspace=0.3)
    alt = _lines_alt(panels, xlabel)
    heads, rows = _lines_table(panels, xlabel)
    return Picture(
        title, svg_of(figure, title, alt), alt, _with_seeds(caption, panels), heads, rows
    )


def _own(series: Series) -> str:
    return series.label.removeprefix("paper").removeprefix(", ") if series.paper else series.label


def _drawable(series: Sequence[Series]) -> list[Series]:
    return [each for each in series if any(y is not None for y in each.y)]


def _lines(axes: Axes, series: Sequence[Series], looks: Mapping[str, Look], *, log: bool) -> None:
    places = list(dict.fromkeys(x for each in series for x in each.x))
    numbers = numeric(places)
    even = numbers and log_places([float(x) for x in places])
    at = {x: x if numbers else number for number, x in enumerate(places)}
    ends: list[tuple[float, float, str, str]] = []
    for each in series:
        look = looks[each.label]
        known = [number for number, y in enumerate(each.y) if y is not None]
        x = [at[each.x[number]] for number in known]
        y = [float(each.y[number] or 0) for number in known]
        every = max(1, len(x) // _MOST_MARKERS)
        fill = "none" if each.paper else look.colour
        axes.plot(
            x, y, color=look.colour, linestyle=(0, (1, 3)) if each.paper else look.dashes,
            marker=look.marker, markevery=every, markersize=5.5, markerfacecolor=fill,
            linewidth=1.6, label=in_picture(each.label), zorder=3,
        )  # fmt: skip
        spread = [each.spread[n] if n < len(each.spread) else None for n in known]
        if any(value for value in spread):
            width = [value or 0.0 for value in spread]
            if len(x) > _MOST_MARKERS:
                low = [a - b for a, b in zip(y, width, strict=True)]
                high = [a + b for a, b in zip(y, width, strict=True)]
                axes.fill_between(x, low, high, color=look.colour, alpha=0.18, linewidth=0)
            else:
                axes.errorbar(x, y, yerr=width, fmt="none", ecolor=look.colour, capsize=3, lw=1)
        if x:
            ends.append((x[-1], y[-1], each.label, look.colour))
    if log:
        axes.set_yscale("log")
    if even:
        axes.set_xscale("log")
        axes.set_xticks([float(x) for x in places], [plain_number(x) for x in places])
        axes.minorticks_off()
    elif not numbers:
        long = max((len(str(x)) for x in places), default=0) * len(places) > 80
        axes.set_xticks(
            range(len(places)), [in_picture(str(x)) for x in places], rotation=30 if long else 0,
            ha="right" if long else "center",
        )  # fmt: skip
    elif len(places) <= _MOST_MARKERS:
        axes.set_xticks([float(x) for x in places], [plain_number(x) for x in places])
    axes.autoscale_view()
    if len(ends) > 1 or (ends and ends[0][2]):
        name_lines(axes, ends)


def log_places(places: Sequence[float]) -> bool:
    """Tell whether places, such as 64, 128, 256, stand evenly on a logarithmic axis alone."""
    values = sorted(places)
    if len(values) < 3 or values[0] <= 0 or len(values) > _MOST_MARKERS:
        return False
    steps = [math.log(b / a) for a, b in zip(values, values[1:], strict=False)]
    gaps = [b - a for a, b in zip(values, values[1:], strict=False)]
    return max(gaps) / min(gaps) > 4 and max(steps) / min(steps) < max(gaps) / min(gaps)


def _lines_alt(panels: Mapping[str, Sequence[Series]], xlabel: str) -> str:
    words = []
    for name, each in panels.items():
        parts = []
        for series in each:
            known = [(x, y) for x, y in zip(series.x, series.y, strict=True) if y is not None]
            first, last = known[0], known[-1]
            best = max(y for _, y in known)
            parts.append(
                f"{series.label or 'one line'} from {plain_number(first[1])} at "
                f"{plain_number(first[0])} to {plain_number(last[1])} at {plain_number(last[0])}, "
                f"highest {plain_number(best)}"
            )
        words.append(f"{name} over {xlabel}: " + "; ".join(parts))
    return ". ".join(words) + "."


def _with_seeds(caption: str, panels: Mapping[str, Sequence[Series]]) -> str:
    counts = {n for each in panels.values() for series in each for n in series.seeds if n}
    if not counts:
        return caption
    low, high = min(counts), max(counts)
    many = f"{low}" if low == high else f"{low} to {high}"
    words = f"n = {many} seed{'s' * (high != 1)}"
    if high > 1:
        words += "; bars and bands are standard deviations over seeds"
    return f"{caption} ({words})" if caption else words


def _lines_table(
    panels: Mapping[str, Sequence[Series]], xlabel: str
) -> tuple[list[str], list[list[str]]]:
    heads = [xlabel]
    columns: list[tuple[Series, dict[Any, str]]] = []
    for name, each in panels.items():
        for series in each:
            heads.append(f"{name}: {series.label}" if series.label else name)
            cells = {}
            for number, (x, y) in enumerate(zip(series.x, series.y, strict=True)):
                cells[x] = with_spread(
                    y, _at(series.spread, number), _at(series.seeds, number) if series.seeds else 0
                )
            columns.append((series, cells))
    places = list(dict.fromkeys(x for series, _ in columns for x in series.x))
    if numeric(places):
        places.sort()
    every = max(1, math.ceil(len(places) / 60))
    chosen = [x for n, x in enumerate(places) if n % every == 0 or n == len(places) - 1]
    return heads, [[plain_number(x), *[cells.get(x, "-") for _, cells in columns]] for x in chosen]


def _at(values: Sequence[Any], number: int) -> Any:
    return values[number] if number < len(values) else None


def with_spread(value: float | None, spread: float | None, seeds: int | None) -> str:
    """Return a number with its standard deviation and how many seeds are behind it."""
    if value is None:
        return "-"
    text = plain_number(value)
    if spread is not None:
        text += f" ± {plain_spread(spread)}"
    return f"{text} (n = {seeds})" if seeds else text
