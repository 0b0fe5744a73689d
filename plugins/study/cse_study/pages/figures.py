"""Figures of pages, drawn by matplotlib: readable without colour, on a light or a dark page."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from cse_study.results.table import plain_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#010203"
"""Replaced by the text colour of the page that shows the figure; the style has it too."""
_INK_STYLE = "svg{color:#1b1b1b}@media screen and (prefers-color-scheme:dark){svg{color:#e8e8e8}}"
COLOURS = ("#3b7dc4", "#c4661f", "#2f8f5b", "#9a62c2", "#cf4a5a", "#188c99", "#94733a", "#7b7f86")
"""Each has a contrast of 3 or more to white and to nearly black."""
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_DASHES: tuple[Any, ...] = ("-", (0, (6, 2)), (0, (2, 2)), (0, (7, 2, 2, 2)), (0, (1, 1)),
                            (0, (7, 2, 2, 2, 2, 2)), (0, (4, 4)), (0, (10, 3)))  # fmt: skip
_STYLE = Path(__file__).with_name("figures.mplstyle")
_WIDTH, _HEIGHT = 7.4, 3.9
"""Of a figure, in inches."""
_MISSING = "Glyph .* missing from font"
_MAX_MARKERS = 12
_MAX_NAMED_POINTS = 16
_LABEL_WIDTH = 26
"""Letters in a line of an axis' name."""


@dataclass(frozen=True)
class Series:
    """Numbers that are drawn together.

    Attributes:
        x: Where they stand: numbers, or names of places.
        y: The numbers; None where one is missing.
        spread: Standard deviation of each over seeds, None where there is one seed.
        seeds: How many seeds are behind each.
        paper: Whether the numbers are a paper's.
    """

    label: str
    x: Sequence[Any]
    y: Sequence[float | None]
    spread: Sequence[float | None] = ()
    seeds: Sequence[int] = ()
    paper: bool = False

    @property
    def name(self) -> str:
        """The name in a legend."""
        return ", ".join(filter(None, ["paper" if self.paper else "", self.label]))


@dataclass(frozen=True)
class Picture:
    """A figure of a page, an SVG file of its own; ``alt`` says in words what it shows."""

    title: str
    svg: str
    caption: str = ""
    alt: str = ""
    figure: Figure | None = field(default=None, repr=False)

    def pdf(self) -> bytes:
        """Return it as a PDF file, whose text stays text."""
        import matplotlib

        assert self.figure is not None
        content = io.BytesIO()
        with matplotlib.rc_context({"pdf.fonttype": 42}, _STYLE), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=_MISSING)
            self.figure.savefig(content, format="pdf", metadata={"CreationDate": None})
        return content.getvalue()


def look(number: int) -> dict[str, Any]:
    """Choose the style of one of several lines: colour, marker and dashes; 64 of them differ."""
    turn, place = divmod(number, len(COLOURS))
    dashes = _DASHES[(place + turn) % len(_DASHES)]
    return {"color": COLOURS[place], "marker": _MARKERS[place], "linestyle": dashes}


def draw(
    title: str,
    paint: Callable[[list[Axes]], None],
    *,
    panels: int = 1,
    height: float = _HEIGHT,
    caption: str = "",
) -> Picture:
    """Return a figure; ``paint`` draws into its panels, which stand below each other.

    ``height`` is that of a panel, in inches.
    """
    import matplotlib
    from matplotlib.figure import Figure

    text = io.StringIO()
    with matplotlib.rc_context(fname=_STYLE), warnings.catch_warnings():
        # Letters are drawn by the reader's browser: fonts that are missing here do not matter.
        warnings.filterwarnings("ignore", message=_MISSING)
        figure = Figure(figsize=(_WIDTH, height * panels), layout="constrained")
        axes = list(figure.subplots(panels, squeeze=False)[:, 0])
        paint(axes)
        handles: dict[Any, Any] = {}
        for ax in axes:
            handles |= {label: handle for handle, label in zip(*ax.get_legend_handles_labels(),
                                                               strict=True)}  # fmt: skip
        ends = [f"{ax.get_ylabel()} from {ax.dataLim.y0:.4g} to {ax.dataLim.y1:.4g}"
                for ax in axes]  # fmt: skip
        alt = f"{title}: {'; '.join(ends)} by {axes[-1].get_xlabel()}"
        alt += f", {', '.join(handles)}" if handles else ""
        if len(handles) > 1:
            figure.legend(list(handles.values()), list(handles), loc="outside right upper")
        figure.savefig(text, format="svg", transparent=True,
                       metadata={"Date": None, "Creator": None})  # fmt: skip
    svg = text.getvalue().replace(INK, "currentColor")
    svg = svg.replace('<style type="text/css">', f'<style type="text/css">{_INK_STYLE}', 1)
    return Picture(title, svg, caption, " ".join(alt.split()), figure)


def lines_picture(
    title: str,
    panels: Mapping[str, Sequence[Series]],
    xlabel: str,
    *,
    xscale: str = "linear",
    yscale: str = "linear",
    caption: str = "",
) -> Picture | None:
    """Draw lines, a panel for each quantity; None where there is nothing to draw.

    ``panels`` has the series by the name of their quantity. ``xscale`` is matplotlib's name of the
    scale of the places, ``yscale`` that of the quantities.
    """
    panels = {
        name: known
        for name, lines in panels.items()
        if (known := [series for series in lines if any(y is not None for y in series.y)])
    }
    if not panels:
        return None
    every = [series for lines in panels.values() for series in lines]
    # A paper's numbers have the look of those beside them, with dots and hollow marks.
    looks = {label: look(n) for n, label in enumerate(dict.fromkeys(s.label for s in every))}
    places = list(dict.fromkeys(x for series in every for x in series.x))
    numeric = not any(isinstance(x, str) for x in places)
    if numeric:
        places.sort()

    def paint(axes: list[Axes]) -> None:
        for here, (name, lines) in zip(axes, panels.items(), strict=True):
            if not numeric:  # the categories in one order, whichever a line has
                here.plot(list(map(str, places)), [float("nan")] * len(places))
            for series in lines:
                _line(here, series, looks[series.label], numeric)
            here.set(ylabel=fill(name, _LABEL_WIDTH, break_long_words=False), yscale=yscale)
            if numeric:
                here.set_xscale(xscale)
            if xscale == "log":
                here.set_xticks(places, list(map(plain_number, places)))
                here.minorticks_off()
            if sum(len(str(x)) for x in places) > 80 and not numeric:
                here.tick_params(axis="x", rotation=30)
        axes[-1].set_xlabel(xlabel)

    counts = sorted({n for series in every for n in series.seeds if n})
    if counts:
        seeds = " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
        words = f"n = {seeds} seed{'s' * (counts[-1] > 1)}"
        words += "; bars are standard deviations over seeds" if counts[-1] > 1 else ""
        caption = f"{caption} ({words})" if caption else words
    height = _HEIGHT if len(panels) == 1 else 2.6
    return draw(title, paint, panels=len(panels), height=height, caption=caption)


def _line(axes: Axes, series: Series, style: Mapping[str, Any], numeric: bool) -> None:
    known = [(x if numeric else str(x), y, n) for n, (x, y) in
             enumerate(zip(series.x, series.y, strict=True)) if y is not None]  # fmt: skip
    x, y, numbers = zip(*known, strict=True)
    every = max(1, len(x) // _MAX_MARKERS)
    spread = [series.spread[n] or 0.0 for n in numbers] if any(series.spread) else None
    paper = {"linestyle": ":", "markerfacecolor": "none"} if series.paper else {}
    axes.errorbar(x, y, yerr=spread, markevery=every, errorevery=every, capsize=3,
                  elinewidth=1, label=_label(series.name), **{**style, **paper})  # fmt: skip


def _label(name: str) -> str:
    """Return a name that a legend shows; matplotlib leaves out those that begin with ``_``."""
    return f"\u200b{name}" if name.startswith("_") else name


def scatter_picture(
    title: str,
    groups: Mapping[str, Sequence[tuple[float, float, str]]],
    xlabel: str,
    ylabel: str,
    caption: str = "",
) -> Picture | None:
    """Draw points, each an x, a y and a name, by group; a few have their names beside them."""
    groups = {name: points for name, points in groups.items() if points}
    if not groups:
        return None
    named = sum(map(len, groups.values())) <= _MAX_NAMED_POINTS

    def paint(axes: list[Axes]) -> None:
        (here,) = axes
        for number, (name, points) in enumerate(groups.items()):
            style = {**look(number), "linestyle": "none"}
            x, y, names = zip(*points, strict=True)
            here.plot(x, y, label=_label(name), markersize=7 if named else 4,
                      markerfacecolor=style["color"] if named else "none", **style)  # fmt: skip
            for at, word in enumerate(names if named else ()):
                here.annotate(word, (x[at], y[at]), xytext=(7, 4), textcoords="offset points",
                              fontsize=9)  # fmt: skip
        here.margins(0.12)
        here.set(xlabel=xlabel, ylabel=ylabel)

    return draw(title, paint, caption=caption)


def box_picture(
    title: str, groups: Mapping[str, Sequence[float]], xlabel: str, ylabel: str
) -> Picture | None:
    """Draw a box for each group of numbers, one number a seed, and the numbers themselves."""
    groups = {name: list(values) for name, values in groups.items() if values}
    if not groups:
        return None

    def paint(axes: list[Axes]) -> None:
        (here,) = axes
        names = [f"{name}, n = {len(values)}" for name, values in groups.items()]
        ink = {"color": INK}
        here.boxplot(
            list(groups.values()), tick_labels=names, orientation="horizontal", showfliers=False,
            boxprops=ink, medianprops=ink, whiskerprops=ink, capprops=ink,
        )  # fmt: skip
        for number, values in enumerate(groups.values()):
            here.plot(values, [number + 1] * len(values), color=COLOURS[0], marker="o",
                      linestyle="none", markerfacecolor="none")  # fmt: skip
        here.invert_yaxis()  # the first one above
        here.set(xlabel=ylabel, ylabel=xlabel)

    caption = "Each mark is a seed; a box reaches from quarter to quarter."
    height = max(_HEIGHT, 0.9 + 0.28 * len(groups))
    return draw(title, paint, height=height, caption=caption)


def graph_picture(
    title: str,
    weights: Mapping[tuple[int, int], float],
    kept: Sequence[tuple[int, int]],
    clusters: Sequence[Sequence[int]],
) -> Picture | None:
    """Draw a whole graph, and below it the edges that are kept, with their weights.

    ``weights`` has that of each edge of the whole graph, by its two nodes. The nodes of a cluster
    have one look.
    """
    nodes = [node for cluster in clusters for node in cluster]  # kept edges cross no other cluster
    if not nodes:
        return None
    turns = [2 * math.pi * at / len(nodes) for at in range(len(nodes))]
    places = {node: (math.cos(turn), math.sin(turn))
              for node, turn in zip(nodes, turns, strict=True)}  # fmt: skip
    largest = max(map(abs, weights.values()), default=0) or 1

    def paint(axes: list[Axes]) -> None:
        for here, edges, name in zip(axes, (weights, kept), ("all edges", "kept edges"),
                                     strict=True):  # fmt: skip
            for edge in edges:
                x, y = zip(*(places[node] for node in edge), strict=True)
                here.plot(
                    x,
                    y,
                    color=INK,
                    alpha=0.6 if edges is kept else 0.2,
                    linewidth=3 * abs(weights[edge]) / largest,
                )
                if edges is kept:
                    here.annotate(f"{weights[edge]:.3g}", (sum(x) / 2, sum(y) / 2), fontsize=8)
            for number, cluster in enumerate(clusters):
                x, y = zip(*(places[node] for node in cluster), strict=True)
                style = {**look(number), "linestyle": "none"}
                here.plot(x, y, label=f"cluster {number + 1}", markersize=9, **style)
            for node, place in places.items():
                beside = (1.1 * place[0], 1.1 * place[1])
                here.annotate(str(node), beside, ha="center", va="center")
            here.set(ylabel=name, aspect="equal", xticks=[], yticks=[])
            here.margins(0.15)
        axes[-1].set_xlabel("number of a sentence")

    caption = "The width of an edge is its weight, which is printed beside the edges that are kept."
    return draw(title, paint, panels=2, height=4.6, caption=caption)
