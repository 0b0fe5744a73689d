"""Pictures of the first page: a step drawn from its plan, and bars drawn from a table of a page."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
MIX = {"aug": "fgsm", "negatives": "queue", "loss": "twins"}
"""Flags of the run that is drawn: MoCoSE's perturbation and queue with IFCL's loss."""
VIEWS, PASSES, STORES, LOSSES = range(4)
PLAIN = "#eceff3"
COLOURS = {"cse-mocose": "#bcd9f5", "cse-ifcl": "#f9d3a8"}
BARS = ("#c3c9d2", "#8fb4dc", "#2f6db3")
_STYLE = 'font-family="sans-serif" font-size="13" role="img"'
_ARROW = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
    'orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#44546a"/></marker></defs>'
)


def pictures() -> Iterator[tuple[Path, str]]:
    """Yield each picture's file with what it should hold."""
    import cse

    yield FOLDER / "combined.svg", combined(cse.plan(**MIX).to_dict())
    yield FOLDER / "search.svg", search((FOLDER / "domains.md").read_text(encoding="utf-8"))


def combined(plan: Mapping[str, Any]) -> str:
    """Draw the views, encoder passes, stores and losses of a plan, coloured by distribution."""
    parts = {f"{part['kind']}.{part['name']}": part for part in plan["parts"]}
    real = [each for each in plan["passes"] if "(off in this pass)" not in each["why"]]
    extra = len(plan["passes"]) - len(real)
    stores = [path for path in parts if path.startswith("negatives.")]
    losses = [path for path in parts if path.startswith("loss.")]
    columns = [
        [(view["name"], view["augmenters"]) for view in plan["views"]],
        [(each["branch"], []) for each in real],
        [(path, [path]) for path in stores],
        [(path, [path]) for path in losses],
    ]
    places = {}
    lines = []
    for column, boxes in enumerate(columns):
        for row, (name, marks) in enumerate(boxes):
            x, y = 20 + 225 * column, 60 + round(210 * (row + 0.5) / len(boxes))
            if column == STORES:  # beside the pass that fills it
                sources = [each["branch"] for each in real if name in each["why"]]
                y = max((places[PASSES, branch][1] for branch in sources), default=y)
            places[column, name] = (x, y)
            lines += _box(x, y, name, [parts[mark] for mark in marks])
    edges = [((VIEWS, view), (PASSES, each["branch"])) for each in real for view in each["views"]]
    for each in real:
        ends = [(LOSSES, loss) for loss in losses if each["gradient"]]
        ends += [(STORES, store) for store in stores if store in each["why"]]
        edges += [((PASSES, each["branch"]), end) for end in ends]
    edges += [((STORES, store), (LOSSES, loss)) for store in stores for loss in losses]
    drawn = (_edge(places[start], places[end]) for start, end in edges)
    heads = ("views", "encoder passes", "negatives", "losses")
    titles = [_text(20 + 225 * n, 40, head, weight="bold") for n, head in enumerate(heads)]
    known = {part["distribution"] for part in parts.values()} & COLOURS.keys()
    legend = [_text(20 + 225 * n, 305, f"■ {name}", fill=COLOURS[name], size=15)
              for n, name in enumerate(sorted(known, reverse=True))]  # fmt: skip
    if extra:
        legend.append(_text(470, 305, f"{extra} more encoder pass for the gradient of the inputs"))
    words = " ".join(f"--{kind} {name}" for kind, name in MIX.items())
    return _svg(880, 320, f"A step of cse train {words}", [*drawn, *lines, *titles, *legend])


def search(page: str) -> str:
    """Draw nDCG@10 of BM25, an encoder, and both, from the table of a page that has these."""
    page = page.partition("| BM25 | encoder | both |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| ([^,|]+), [^|]*\| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|", page, re.M)
    lines = []
    for group, (name, *scores) in enumerate(rows):
        x = 60 + 205 * group
        lines.append(_text(x, 232, name))
        for bar, score in enumerate(scores):
            height = round(2 * float(score))
            lines.append(f'<rect x="{x + 48 * bar}" y="{212 - height}" width="42" '
                         f'height="{height}" fill="{BARS[bar]}"/>')  # fmt: skip
            lines.append(_text(x + 48 * bar + 4, 206 - height, f"{float(score):.1f}"))
    for number, name in enumerate(("BM25", "all-MiniLM-L6-v2", "both")):
        lines.append(_text(60 + 160 * number, 262, f"■ {name}", fill=BARS[number], size=15))
    return _svg(880, 275, "nDCG@10 by words, by vectors, and by both", lines)


def _svg(width: int, height: int, title: str, lines: Sequence[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {_STYLE}>'
    back = f'<rect width="{width}" height="{height}" fill="#ffffff"/>'
    return "\n".join([head, f"<title>{escape(title)}</title>", _ARROW, back, *lines, "</svg>", ""])


def _box(x: int, y: int, name: str, parts: Sequence[Mapping[str, Any]]) -> list[str]:
    """Draw a box around a name, in the colour of the parts that make or change it."""
    owners = [part["distribution"] for part in parts]
    fill = next((COLOURS[owner] for owner in owners if owner in COLOURS), PLAIN)
    said = ", ".join(part["name"] for part in parts if f"{part['kind']}.{part['name']}" != name)
    rect = (f'<rect x="{x}" y="{y - 24}" width="165" height="48" rx="6" fill="{fill}" '
            'stroke="#44546a"/>')  # fmt: skip
    text = [_text(x + 12, y + (-3 if said else 5), name, weight="bold")]
    return [rect, *text, *([_text(x + 12, y + 15, said)] if said else [])]


def _edge(start: tuple[int, int], end: tuple[int, int]) -> str:
    (x, y), (to, at) = (start[0] + 165, start[1]), end
    bend = (x + to) // 2
    return (f'<path d="M{x},{y} C{bend},{y} {bend},{at} {to - 2},{at}" fill="none" '
            'stroke="#44546a" marker-end="url(#tip)"/>')  # fmt: skip


def _text(
    x: int, y: int, words: str, *, weight: str = "", fill: str = "#1b2a3d", size: int = 13
) -> str:
    bold = f' font-weight="{weight}"' if weight else ""
    mark, rest = (words[:1], words[1:]) if words.startswith("■") else ("", words)
    colour = f'<tspan fill="{fill}">{mark}</tspan>' if mark else ""
    place = f'x="{x}" y="{y}" font-size="{size}" fill="#1b2a3d"'
    return f"<text {place}{bold}>{colour}{escape(rest)}</text>"
