"""How pictures look: readable in a dark and a light page, on paper, and without colour."""

from __future__ import annotations

import io
import math
import re
import warnings
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#010203"
"""Stands for the colour of the page's text, which a picture takes from the page."""
_COLOURS = ("#3b7dc4", "#c4661f", "#2f8f5b", "#9a62c2", "#cf4a5a", "#188c99", "#94733a", "#7b7f86")
"""Each has a contrast of 3 or more to white and to nearly black."""
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_DASHES: tuple[Any, ...] = ("-", (0, (6, 2)), (0, (2, 2)), (0, (7, 2, 2, 2)), (0, (1, 1)),
                            (0, (7, 2, 2, 2, 2, 2)), (0, (4, 4)), (0, (10, 3)))  # fmt: skip
_HATCHES = ("", "////", "||||", "xxxx", "\\\\\\\\", "++", "----", "//")
"""Straight lines alone: of dots, a picture of twenty boxes has a megabyte."""
_PIXELS = 1.45
"""Of a page for each point of a picture."""
_NEAR_END = 0.85
"""Share of the width behind which a line ends at the right side, where its name stands."""
WIDTH, HEIGHT = 7.4, 3.9
"""Of a picture, in inches."""


@dataclass(frozen=True)
class Look:
    """How one of several things is drawn: colour, marker, dashes and hatch all differ."""

    colour: str
    marker: str
    dashes: Any
    hatch: str

    @staticmethod
    def of(number: int) -> Look:
        """Return the look of the thing with this number, from 0.

        After eight, colours and markers repeat, with other dashes and another hatch.
        """
        turn, place = divmod(number, len(_COLOURS))
        shifted = (place + turn) % len(_COLOURS)
        return Look(_COLOURS[place], _MARKERS[place], _DASHES[shifted], _HATCHES[shifted])


@dataclass(frozen=True)
class Series:
    """Numbers that are drawn together.

    Attributes:
        label: What they are called.
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


@dataclass(frozen=True)
class Picture:
    """A picture of a page.

    Attributes:
        title: Above it.
        svg: The picture.
        alt: What it shows, in words.
        caption: Below it.
        heads: Head of the table with its numbers.
        rows: That table.
    """

    title: str
    svg: str
    alt: str
    caption: str = ""
    heads: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()


def in_picture(name: str) -> str:
    """Return a name as matplotlib draws it: no formula, and in legends whatever it begins with."""
    text = name.replace("$", r"\$")
    return f"\u200b{text}" if text.startswith("_") else text


def plain_number(value: object) -> str:
    """Return a number with as many digits as can be read."""
    if value is None:
        return "-"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int) or (abs(value) >= 1e4 and value == int(value)):
        return f"{int(value):,}"
    return f"{value:.2f}" if 1 <= abs(value) < 1e4 else f"{value:.4g}"


def plain_spread(value: float) -> str:
    """Return a standard deviation with as many digits as it has a use for."""
    return f"{value:.2f}" if value >= 0.1 or not value else f"{value:.2g}"


def new_figure(
    panels: int = 1, *, width: float = WIDTH, height: float = HEIGHT
) -> tuple[Figure, list[Axes]]:
    """Return a figure with panels under each other."""
    import matplotlib
    from matplotlib.figure import Figure

    look: dict[Any, Any] = {
        "font.size": 10, "font.family": "sans-serif", "hatch.linewidth": 0.6,
        "axes.edgecolor": INK, "axes.labelcolor": INK, "text.color": INK, "xtick.color": INK,
        "ytick.color": INK, "axes.spines.top": False, "axes.spines.right": False,
        "figure.facecolor": "none", "axes.facecolor": "none", "axes.titlesize": 10,
        "grid.color": INK, "grid.alpha": 0.15, "hatch.color": INK,
    }  # fmt: skip
    with matplotlib.rc_context(look):
        figure = Figure(figsize=(width, height * panels if panels > 1 else height))
        axes = [figure.add_subplot(panels, 1, number + 1) for number in range(panels)]
        for each in axes:
            each.grid(axis="y")
            each.set_axisbelow(True)
    return figure, axes


def svg_of(figure: Figure, title: str, alt: str) -> str:
    """Return a figure as SVG that stands in a page: ink of the page, names of its own, in words."""
    import matplotlib

    text = io.StringIO()
    settings: Any = {"svg.fonttype": "none", "svg.hashsalt": title + alt}
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        # Letters are drawn by the reader's browser; that a font here lacks some does not matter.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(text, format="svg", bbox_inches="tight", pad_inches=0.08, transparent=True,
                       metadata={"Date": None, "Creator": None})  # fmt: skip
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    for side in ("width", "height"):
        svg = re.sub(rf'(<svg [^>]*?)\s{side}="[^"]*"', r"\1", svg, count=1)
    svg = svg.replace(INK, "currentColor").replace("#000000", "currentColor")
    prefix = f"p{zlib.crc32((title + alt).encode()):x}-"
    svg = re.sub(r'\bid="', f'id="{prefix}', svg)
    svg = re.sub(r"url\(#", f"url(#{prefix}", svg)
    svg = re.sub(r'href="#', f'href="#{prefix}', svg)
    # Letters of all pictures of a page have one size, however wide the picture is.
    box = re.search(r'viewBox="0 0 ([\d.]+)', svg)
    wide = round(float(box[1]) * _PIXELS) if box else 900
    words = f"<title>{escape(title)}</title><desc>{escape(alt)}</desc>"
    return re.sub(
        r"(<svg [^>]*)>",
        lambda found: f'{found[1]} role="img" style="width: {wide}px">{words}',
        svg,
        count=1,
    )


def alone(picture: Picture) -> str:
    """Return a picture as a file of its own, whose ink follows the reader's light or dark page."""
    ink = "svg{color:#1b1b1b}@media (prefers-color-scheme:dark){svg{color:#e8e8e8}}"
    return picture.svg.replace("<title>", f"<style>{ink}</style><title>", 1) + "\n"


def numeric(values: Sequence[Any]) -> bool:
    """Tell whether places are numbers."""
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def name_lines(axes: Axes, ends: Sequence[tuple[float, float, str, str]]) -> None:
    """Write the name of each line at its end, without one covering another.

    Args:
        axes: Where the lines are, their limits set.
        ends: x and y of each end, the name, and the colour.
    """
    low, high = axes.get_ylim()
    figure = axes.get_figure(root=True)
    assert figure is not None
    height = axes.get_position().height * figure.get_size_inches()[1]
    gap = (13 / 72) / max(height, 0.1)
    logarithmic = axes.get_yscale() == "log"

    def share(value: float) -> float:
        if logarithmic:
            return (math.log(value) - math.log(low)) / (math.log(high) - math.log(low))
        return (value - low) / ((high - low) or 1)

    left, right = axes.get_xlim()
    if axes.get_xscale() == "log":
        left, right = math.log(left), math.log(right)
    for x, y, name, _ in ends:
        if not _at_the_end(axes, x, left, right):
            axes.annotate(in_picture(_cut(name, 34)), (x, y), xytext=(7, 0),
                          textcoords="offset points", va="center", fontsize=9)  # fmt: skip
    ends = [end for end in ends if _at_the_end(axes, end[0], left, right)]
    places = sorted(range(len(ends)), key=lambda number: share(ends[number][1]))
    heights = [share(ends[number][1]) for number in places]
    for place in range(1, len(heights)):
        heights[place] = max(heights[place], heights[place - 1] + gap)
    over = max(0.0, heights[-1] - 1.0) if heights else 0.0
    if over:
        heights[-1] -= over
        for place in range(len(heights) - 2, -1, -1):
            heights[place] = min(heights[place], heights[place + 1] - gap)
    for number, height in zip(places, heights, strict=True):
        x, y, name, colour = ends[number]
        axes.annotate(
            in_picture(_cut(name, 34)), xy=(x, y), xycoords="data", xytext=(1.025, height),
            textcoords="axes fraction", va="center", ha="left", fontsize=9, annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "lw": 0.7, "shrinkA": 1, "shrinkB": 3,
                        "relpos": (0, 0.5)},
        )  # fmt: skip


def _at_the_end(axes: Axes, x: float, left: float, right: float) -> bool:
    place = math.log(x) if axes.get_xscale() == "log" else x
    return (place - left) / ((right - left) or 1) >= _NEAR_END


def name_points(axes: Axes, points: Sequence[tuple[float, float, str]]) -> None:
    """Write the name of each point beside it, on a side where no other name or point is.

    Args:
        axes: Where the points are, their limits set.
        points: x, y and name.
    """
    figure = axes.get_figure(root=True)
    assert figure is not None
    scale = 72 / figure.dpi
    at = [axes.transData.transform((x, y)) * scale for x, y, _ in points]
    edge = float(axes.transAxes.transform((0, 0))[0]) * scale + 3
    taken = [(x - 4, y - 4, x + 4, y + 4) for x, y in at]
    for (x, y), (_, _, name), point in zip(at, points, points, strict=True):
        wide = 5.2 * len(name)
        sides = ((7, -4, "left"), (-7, -4, "right"), (0, 7, "center"), (0, -15, "center"),
                 (7, 6, "left"), (7, -14, "left"), (-7, 6, "right"), (-7, -14, "right"),
                 (7, 18, "left"), (7, -26, "left"))  # fmt: skip
        boxes = []
        for right, up, align in sides:
            start = x + right - {"left": 0.0, "right": wide, "center": wide / 2}[align]
            box = (start, y + up, start + wide, y + up + 10)
            covered = sum(_common(box, other) for other in taken)
            covered += 10 * max(0.0, edge - start)
            boxes.append((covered, box, right, up, align))
        _, box, right, up, align = min(boxes, key=lambda found: found[0])
        taken.append(box)
        axes.annotate(in_picture(name), point[:2], xytext=(right, up), textcoords="offset points",
                      ha=align, va="bottom", fontsize=9)  # fmt: skip


def _common(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the area that two boxes have in common."""
    wide = min(one[2], other[2]) - max(one[0], other[0])
    high = min(one[3], other[3]) - max(one[1], other[1])
    return max(wide, 0.0) * max(high, 0.0)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
