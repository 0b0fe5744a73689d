"""A plan as a picture: texts, views, branches with their poolers and heads, stores and losses."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cse_study.pages.drawing import INK, Look, Picture, new_figure, svg_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FEED = re.compile(r"(?P<source>\S+)(?: \([^)]*\))? -> (?P<target>\S+)(?: \((?P<how>.*)\))?")
_WIDTHS = {"text": 1.15, "view": 1.7, "branch": 2.0, "vectors": 1.4, "store": 1.9, "loss": 1.65}
_LINE, _GAP, _BETWEEN = 0.2, 0.3, 0.5
"""Height of a line, gap between boxes of a column, and between columns, in inches."""
_LOOKS = {"text": 7, "view": 0, "branch": 2, "vectors": 5, "store": 1, "loss": 3}


@dataclass
class _Box:
    """A box of the picture: its column, its lines, its place once it has one."""

    kind: str
    lines: list[str]
    dashed: bool = False
    x: float = 0.0
    y: float = 0.0

    @property
    def width(self) -> float:
        return _WIDTHS[self.kind]

    @property
    def height(self) -> float:
        return _LINE * len(self.lines) + 0.16

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


@dataclass
class _Drawing:
    boxes: dict[str, _Box] = field(default_factory=dict)
    arrows: list[tuple[str, str, bool]] = field(default_factory=list)

    def add(self, name: str, kind: str, lines: Sequence[str], *, dashed: bool = False) -> None:
        """Add a box; its lines are broken to its width, the first one is its name."""
        letters = int(_WIDTHS[kind] * 12)
        broken = [
            part
            for line in lines
            for part in textwrap.wrap(line, letters, break_on_hyphens=False) or [""]
        ]
        self.boxes[name] = _Box(kind, broken, dashed)

    def join(self, start: str, end: str, *, dashed: bool = False) -> None:
        """Add an arrow between two boxes that are there, once."""
        if start in self.boxes and end in self.boxes and (start, end, dashed) not in self.arrows:
            self.arrows.append((start, end, dashed))


def plan_picture(title: str, plan: Mapping[str, Any], caption: str = "") -> Picture:
    """Draw a plan, as ``cse train --dry-run --json`` prints it."""
    drawing = _boxes_of(plan)
    kinds = [k for k in _WIDTHS if any(box.kind == k for box in drawing.boxes.values())]
    columns = [[box for box in drawing.boxes.values() if box.kind == kind] for kind in kinds]
    heights = [sum(box.height + _GAP for box in column) - _GAP for column in columns]
    of_kind = dict(zip(kinds, heights, strict=True))
    # Stores lie below the vectors, so that arrows from vectors to losses pass above them.
    below = of_kind.get("store", -_GAP) + _GAP
    tall = max(*heights, of_kind.get("vectors", 0) + below) + 0.45
    wide = sum(_WIDTHS[kind] for kind in kinds) + _BETWEEN * (len(kinds) - 1)
    figure, (axes,) = new_figure(width=wide, height=tall)
    axes.set_position((0, 0, 1, 1))
    axes.set_xlim(-0.02, wide + 0.02)
    axes.set_ylim(0, tall)
    axes.axis("off")
    x = 0.0
    heads = {"text": "texts", "view": "views", "branch": "encoders", "vectors": "vectors",
             "store": "kept or mined", "loss": "losses"}  # fmt: skip
    for kind, column, height in zip(kinds, columns, heights, strict=True):
        y = (tall - 0.4 + height + (below if kind == "vectors" else 0)) / 2
        y = below - _GAP if kind == "store" else y
        axes.text(x + _WIDTHS[kind] / 2, tall - 0.12, heads[kind], ha="center", va="top",
                  fontsize=10, style="italic")  # fmt: skip
        for box in column:
            box.x, box.y = x, y - box.height
            y -= box.height + _GAP
            _draw(axes, box)
        x += _WIDTHS[kind] + _BETWEEN
    for start, end, dashed in drawing.arrows:
        leaving = [each for each in drawing.arrows if each[0] == start]
        coming = [each for each in drawing.arrows if each[1] == end]
        leaving.sort(key=lambda each: -drawing.boxes[each[1]].middle)
        coming.sort(key=lambda each: -drawing.boxes[each[0]].middle)
        arrow = (start, end, dashed)
        ends = (
            _part(leaving.index(arrow), len(leaving)),
            _part(coming.index(arrow), len(coming)),
        )
        _arrow(axes, drawing.boxes[start], drawing.boxes[end], dashed=dashed, ends=ends)
    alt = _alt(plan)
    rows = [
        [str(number), str(each["branch"]), ", ".join(each["views"]),
         "yes" if each["gradient"] else "no", str(each["why"])]
        for number, each in enumerate(plan["passes"], 1)
    ]  # fmt: skip
    words = "Dashed: without gradient. The table has the encoder passes per step."
    return Picture(
        title, svg_of(figure, title, alt), alt, f"{caption} {words}".strip(),
        ["pass", "branch", "views", "gradient", "for"], rows,
    )  # fmt: skip


def _boxes_of(plan: Mapping[str, Any]) -> _Drawing:
    drawing = _Drawing()
    parts: dict[str, list[Mapping[str, Any]]] = {}
    for part in plan["parts"]:
        parts.setdefault(part["kind"], []).append(part)
    gradient = {(each["branch"], view) for each in plan["passes"] if each["gradient"]
                for view in each["views"]}  # fmt: skip
    for view in plan["views"]:
        column = f"column {view['column']}" if view["column"] else "mined rows"
        drawing.add(f"text {column}", "text", [column])
        changed = [f"changed by {', '.join(view['augmenters'])}"] if view["augmenters"] else []
        made = [f"made by {view['made_by']}"] if view["made_by"] else []
        drawing.add(f"view {view['name']}", "view", [view["name"], *made, *changed])
        drawing.join(f"text {column}", f"view {view['name']}")
    pools = [part["name"] if part["name"] == part["use"] else f"{part['name']} ({part['use']})"
             for part in parts.get("pool", [])]  # fmt: skip
    branches = dict.fromkeys(view["branch"] for view in plan["views"])
    used = {part["name"]: part for part in parts.get("branch", [])}
    for name in [*branches, *(name for name in used if name not in branches)]:
        use = used.get(name, {}).get("use", name)
        settings = plan["facts"].get("branches", {}).get(name, {})
        facts = [f"{key} {settings[key]}" for key in ("decay",) if settings.get(key)]
        lines = [name if use == name else f"{name} ({use})", str(plan["facts"]["model"]), *facts]
        trains = any(branch == name for branch, _ in gradient)
        drawing.add(f"branch {name}", "branch", [*lines, "then " + ", ".join(pools)],
                    dashed=not trains)  # fmt: skip
    for view in plan["views"]:
        name, branch = view["name"], view["branch"]
        dashed = (branch, name) not in gradient
        drawing.add(f"vectors {name}", "vectors", [name], dashed=dashed)
        drawing.join(f"view {name}", f"branch {branch}", dashed=dashed)
        drawing.join(f"branch {branch}", f"vectors {name}", dashed=dashed)
    own = {(view["branch"], view["name"]) for view in plan["views"]}
    for each in plan["passes"]:
        for name in each["views"]:
            branch = each["branch"]
            if (branch, name) not in own and f"branch {branch}" in drawing.boxes:
                drawing.add(f"vectors {name} {branch}", "vectors", [f"{name} by {branch}"],
                            dashed=not each["gradient"])  # fmt: skip
                drawing.join(f"view {name}", f"branch {branch}", dashed=not each["gradient"])
                drawing.join(f"branch {branch}", f"vectors {name} {branch}",
                             dashed=not each["gradient"])  # fmt: skip
    for kind in ("positives", "negatives"):
        for part in parts.get(kind, []):
            path = f"{kind}.{part['name']}"
            size = plan["facts"].get("stores", {}).get(part["name"], {}).get("size")
            drawing.add(path, "store", [path, *([f"size {size}"] if size else [])], dashed=True)
            store = plan["facts"].get("stores", {}).get(part["name"], {})
            whose = f"vectors {store.get('view')} {store.get('branch')}"
            whose = whose if whose in drawing.boxes else f"vectors {store.get('view')}"
            drawing.join(whose, path, dashed=True)
    for part in parts.get("loss", []):
        options: Mapping[str, Any] = next((each for each in plan["settings"].get("loss", [])
                        if each.get("name") == part["name"]), {})  # fmt: skip
        use = part["use"] if part["use"] != part["name"] else ""
        shown = [f"{key} {options[key]}" for key in ("level", "weight", "temperature")
                 if options.get(key) not in (None, "sentence", 1.0)]  # fmt: skip
        first = f"{part['name']} ({use})" if use else part["name"]
        drawing.add(f"loss.{part['name']}", "loss", [first, *shown])
        anchor = drawing.boxes.get("vectors anchor", _Box("vectors", []))
        drawing.join("vectors anchor", f"loss.{part['name']}", dashed=anchor.dashed)
    for feed in plan["feeds"]:
        found = _FEED.fullmatch(feed)
        if found is None:
            continue
        source, target = found["source"], found["target"]
        start = source if source in drawing.boxes else f"vectors {source}"
        if start in drawing.boxes:
            drawing.join(start, target, dashed=drawing.boxes[start].dashed)
    return drawing


def _draw(axes: Axes, box: _Box) -> None:
    from matplotlib.patches import FancyBboxPatch

    look = Look.of(_LOOKS[box.kind])
    axes.add_patch(
        FancyBboxPatch(
            (box.x, box.y), box.width, box.height, boxstyle="round,pad=0,rounding_size=0.07",
            facecolor=(*_rgb(look.colour), 0.16), edgecolor=INK, linewidth=1,
            linestyle=(0, (4, 2)) if box.dashed else "-",
        )
    )  # fmt: skip
    y = box.y + box.height - 0.08 - _LINE / 2
    for number, line in enumerate(box.lines):
        axes.text(box.x + box.width / 2, y, line, ha="center", va="center", fontsize=9.5 if number
                  else 10, weight="normal" if number else "bold")  # fmt: skip
        y -= _LINE


def _rgb(colour: str) -> tuple[float, float, float]:
    red, green, blue = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    return red, green, blue


def _part(place: int, count: int) -> float:
    """Return where on a side one of several arrows ends, as a share of the height from below."""
    return 1 - (place + 1) / (count + 1)


def _arrow(axes: Axes, start: _Box, end: _Box, *, dashed: bool, ends: tuple[float, float]) -> None:
    backwards = end.x < start.x
    x0 = start.x if backwards else start.x + start.width
    x1 = end.x + end.width if backwards else end.x
    y0, y1 = start.y + start.height * ends[0], end.y + end.height * ends[1]
    axes.annotate(
        "", xy=(x1, y1), xytext=(x0, y0),
        arrowprops={"arrowstyle": "-|>", "color": INK, "lw": 1, "shrinkA": 1, "shrinkB": 1,
                    "linestyle": (0, (4, 2)) if dashed else "-",
                    "connectionstyle": "arc3,rad=0"},
    )  # fmt: skip


def _alt(plan: Mapping[str, Any]) -> str:
    words = []
    for view in plan["views"]:
        changed = f", changed by {', '.join(view['augmenters'])}" if view["augmenters"] else ""
        column = view["column"] or view["made_by"]
        words.append(f"view {view['name']} of {column}, encoded by {view['branch']}{changed}")
    return f"{'; '.join(words)}. {'; '.join(plan['feeds'])}."
