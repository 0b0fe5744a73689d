"""A plan as a picture: texts, views, branches with their poolers, vectors, stores and losses."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cse_study.pages.figures import COLOURS, INK, Picture, draw
from cse_study.results.text_table import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FEED = re.compile(r"(?P<source>\S+)(?: \([^)]*\))? -> (?P<target>\S+)(?: \((?P<how>.*)\))?")
_COLUMNS = {"text": "texts", "view": "views", "branch": "encoders", "vectors": "vectors",
            "store": "kept or mined", "loss": "losses"}  # fmt: skip
"""Kinds of boxes, from left to right, with the heads of their columns."""
_BOX_WIDTH = 22
"""Letters in a line of a box."""


@dataclass
class _Diagram:
    """Boxes with their kind, lines and whether they are dashed, and arrows between them."""

    boxes: dict[str, tuple[str, str, bool]] = field(default_factory=dict)
    arrows: dict[tuple[str, str], bool] = field(default_factory=dict)

    def add(self, name: str, kind: str, *lines: str, dashed: bool = False) -> None:
        """Add a box; its lines are broken to its width, the first one is its name."""
        broken = [textwrap.fill(line, _BOX_WIDTH, break_on_hyphens=False) for line in lines if line]
        self.boxes[name] = (kind, "\n".join(broken), dashed)

    def join(self, start: str, end: str, *, dashed: bool = False) -> None:
        """Add an arrow between two boxes that are there."""
        if start in self.boxes and end in self.boxes:
            self.arrows[start, end] = dashed


def plan_picture(title: str, plan: Mapping[str, Any]) -> Picture:
    """Draw a plan, as ``cse train --dry-run --json`` prints it."""
    diagram = _diagram_of(plan)
    kinds = {kind: [name for name, box in diagram.boxes.items() if box[0] == kind]
             for kind in _COLUMNS}  # fmt: skip
    columns = {kind: names for kind, names in kinds.items() if names}

    def paint(axes: list[Axes]) -> None:
        (here,) = axes
        here.axis("off")
        here.set(xlim=(-0.5, len(columns) - 0.5), ylim=(0, 1.05))
        texts = {}
        for x, (kind, names) in enumerate(columns.items()):
            here.text(x, 1.05, _COLUMNS[kind], ha="center", va="top", style="italic")
            for number, name in enumerate(names, 1):
                _, lines, dashed = diagram.boxes[name]
                # Stores stand below the middle, so that arrows to losses pass above them.
                y = (1 - number / (len(names) + 1)) * (0.5 if kind == "store" else 1)
                box = {"boxstyle": "round", "facecolor": f"{COLOURS[x]}29", "edgecolor": INK,
                       "linestyle": "--" if dashed else "-"}  # fmt: skip
                texts[name] = here.text(x, y, lines, ha="center", va="center", fontsize=9, bbox=box)
        for (start, end), dashed in diagram.arrows.items():
            arrow = {"arrowstyle": "-|>", "color": INK, "linestyle": "--" if dashed else "-",
                     "patchA": texts[start].get_bbox_patch(),
                     "patchB": texts[end].get_bbox_patch()}  # fmt: skip
            here.annotate("", xy=texts[end].get_position(), xytext=texts[start].get_position(),
                          arrowprops=arrow)  # fmt: skip

    rows = [
        [str(number), str(each["branch"]), ", ".join(each["views"]),
         "yes" if each["gradient"] else "no", str(each["why"])]
        for number, each in enumerate(plan["passes"], 1)
    ]  # fmt: skip
    table = Table(["pass", "branch", "views", "gradient", "for"], rows)
    caption = "Dashed: without gradient. The table has the encoder passes per step."
    height = max(2.0, 1.0 * max(map(len, columns.values())))
    return draw(title, table, paint, width=2.1 * len(columns), height=height, caption=caption)


def _diagram_of(plan: Mapping[str, Any]) -> _Diagram:
    found = _Diagram()
    parts: dict[str, list[Mapping[str, Any]]] = {}
    for part in plan["parts"]:
        parts.setdefault(part["kind"], []).append(part)
    trained = {(each["branch"], view) for each in plan["passes"] if each["gradient"]
               for view in each["views"]}  # fmt: skip
    for view in plan["views"]:
        column = f"column {view['column']}" if view["column"] else "mined rows"
        found.add(column, "text", column)
        found.add(
            f"view {view['name']}", "view", view["name"],
            f"made by {view['made_by']}" if view["made_by"] else "",
            f"changed by {', '.join(view['augmenters'])}" if view["augmenters"] else "",
        )  # fmt: skip
        found.join(column, f"view {view['name']}")
    pools = [_named(part) for part in parts.get("pool", [])]
    branches = {part["name"]: part for part in parts.get("branch", [])}
    for name in dict.fromkeys([*(view["branch"] for view in plan["views"]), *branches]):
        decay = plan["facts"].get("branches", {}).get(name, {}).get("decay")
        found.add(
            f"branch {name}", "branch", _named(branches[name]) if name in branches else name,
            str(plan["facts"]["model"]), f"decay {decay}" if decay else "",
            f"then {', '.join(pools)}", dashed=not any(branch == name for branch, _ in trained),
        )  # fmt: skip
    own = [(view["branch"], view["name"]) for view in plan["views"]]
    passes = [(each["branch"], view) for each in plan["passes"] for view in each["views"]]
    for branch, view in dict.fromkeys([*own, *passes]):
        dashed = (branch, view) not in trained
        name = f"vectors {view}" if (branch, view) in own else f"vectors {view} {branch}"
        if f"branch {branch}" in found.boxes:
            label = view if (branch, view) in own else f"{view} by {branch}"
            found.add(name, "vectors", label, dashed=dashed)
            found.join(f"view {view}", f"branch {branch}", dashed=dashed)
            found.join(f"branch {branch}", name, dashed=dashed)
    for kind in ("positives", "negatives"):
        for part in parts.get(kind, []):
            path = f"{kind}.{part['name']}"
            store = plan["facts"].get("stores", {}).get(part["name"], {})
            size = f"size {store['size']}" if store.get("size") else ""
            found.add(path, "store", path, size, dashed=True)
            vectors = f"vectors {store.get('view')}"
            by_branch = f"{vectors} {store.get('branch')}"
            found.join(by_branch if by_branch in found.boxes else vectors, path, dashed=True)
    losses = {each.get("name"): each for each in plan["settings"].get("loss", [])}
    for part in parts.get("loss", []):
        options = losses.get(part["name"], {})
        values = [f"{key} {options[key]}" for key in ("level", "weight", "temperature")
                  if options.get(key) not in (None, "sentence", 1.0)]  # fmt: skip
        found.add(f"loss.{part['name']}", "loss", _named(part), *values)
        found.join("vectors anchor", f"loss.{part['name']}",
                   dashed=found.boxes.get("vectors anchor", ("", "", False))[2])  # fmt: skip
    for feed in filter(None, map(_FEED.fullmatch, plan["feeds"])):
        start = feed["source"] if feed["source"] in found.boxes else f"vectors {feed['source']}"
        if start in found.boxes:
            found.join(start, feed["target"], dashed=found.boxes[start][2])
    return found


def _named(part: Mapping[str, Any]) -> str:
    """Return the name of a part, and in brackets what it is made of where that differs."""
    return part["name"] if part["name"] == part["use"] else f"{part['name']} ({part['use']})"
