"""The picture of a race: nDCG@10 of each point by the steps that it was trained for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from cse_core.files import atomic_write

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM, LINE = 820, 420, 60, 310, 20, 45, 15
_STYLE = (
    "svg{color:#1b1b1b;font:13px sans-serif}@media(prefers-color-scheme:dark){svg{color:#e8e8e8}}"
)
_WON, _LOST = "#c4661f", "#7b7f86"
_NAMED = 8
"""Points whose names stand beside their ends, at most."""


def draw_race(
    scores: Mapping[str, Sequence[tuple[int, float]]], start: float, winner: str, file: Path
) -> None:
    """Write an SVG file.

    Args:
        scores: Of each point, its steps and score in each rung.
        start: The score of the encoder before training.
        winner: The point that is drawn in another colour.
        file: Where it is written, whole or not at all.
    """
    steps = sorted({step for line in scores.values() for step, _ in line})
    values = [start, *(value for line in scores.values() for _, value in line)]
    low, high = min(values), max(values)
    high = high if high > low else low + 1
    across = {step: LEFT + (WIDTH - LEFT - RIGHT) * (at + 1) / len(steps)
              for at, step in enumerate(steps)}  # fmt: skip

    def down(value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (high - value) / (high - low)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        f"<title>nDCG@10 of held-out titles by steps of training; {escape(winner)} won</title>",
        f"<style>{_STYLE}</style>",
    ]
    for value in sorted({low, start, high}):
        y = down(value)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" '
                     'stroke="currentColor" stroke-opacity=".2"/>')  # fmt: skip
        if value == start or abs(y - down(start)) > LINE:
            parts.append(_text(LEFT - 6, y + 4, f"{value:.1f}", "end"))
    parts.append(_text(LEFT, HEIGHT - 22, "start", "middle"))
    parts += [_text(x, HEIGHT - 22, f"{step}", "middle") for step, x in across.items()]
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 5, "steps", "middle"))
    ends = {name: line[-1][1] for name, line in scores.items()}
    last = {name: line[-1][0] for name, line in scores.items()}
    named = sorted(ends, key=lambda name: (-last[name], -ends[name]))[:_NAMED]
    for name, line in sorted(scores.items(), key=lambda item: item[0] == winner):
        colour, width = (_WON, 3) if name == winner else (_LOST, 1.2)
        points = [(LEFT, down(start)), *((across[step], down(value)) for step, value in line)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(
            f'<polyline fill="none" stroke="{colour}" stroke-width="{width}" points="{path}"/>'
        )
        parts.append(
            f'<circle cx="{points[-1][0]:.1f}" cy="{points[-1][1]:.1f}" r="3" fill="{colour}"/>'
        )
    named.sort(key=lambda name: -ends[name])
    for name, y in zip(named, _apart([down(ends[name]) for name in named]), strict=True):
        shown = f"{name}: {ends[name]:.1f}"
        parts.append(_text(WIDTH - RIGHT + 10, y + 4, shown, "start", bold=name == winner))
    atomic_write(file, "\n".join([*parts, "</svg>"]) + "\n")


def _apart(places: Sequence[float]) -> list[float]:
    """Return the places of lines of text, from the top, where none stands on another."""
    free, lines = float(TOP), []
    for place in places:
        lines.append(max(place, free))
        free = lines[-1] + LINE
    below = float(HEIGHT - BOTTOM)
    for at in reversed(range(len(lines))):
        lines[at] = min(lines[at], below)
        below = lines[at] - LINE
    return lines


def _text(x: float, y: float, text: str, anchor: str, *, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="currentColor"{weight}>'
        f"{escape(text)}</text>"
    )
