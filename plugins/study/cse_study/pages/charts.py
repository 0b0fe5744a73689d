"""Pictures of points, boxes, bars and densities, each with its words and its table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cse_study.pages.drawing import (
    HEIGHT,
    INK,
    Look,
    Picture,
    in_picture,
    name_points,
    new_figure,
    plain_number,
    svg_of,
)

_ROW = 0.28
"""Height of a box and its name, in inches."""
_MOST_POINTS = 2000
_MOST_NAMES = 16


def scatter_picture(
    title: str,
    groups: Mapping[str, Sequence[tuple[float, float, str]]],
    xlabel: str,
    ylabel: str,
    caption: str = "",
) -> Picture | None:
    """Draw points; few of them have their names beside them, many groups a legend.

    Args:
        title: Of the picture.
        groups: x, y and name of each point, by the name of the group.
        xlabel: What x is.
        ylabel: What y is.
        caption: Below the picture.
    """  # fmt: skip
    groups = {name: each for name, each in groups.items() if each}
    if not groups:
        return None
    figure, (axes,) = new_figure(height=4.3)
    axes.grid(axis="x")
    named = sum(map(len, groups.values())) <= _MOST_NAMES
    for number, (name, each) in enumerate(groups.items()):
        look = Look.of(number)
        every = max(1, len(each) // _MOST_POINTS)
        drawn = each[::every]
        axes.scatter(
            [x for x, _, _ in drawn], [y for _, y, _ in drawn], marker=look.marker,
            s=44 if named else 14, facecolors=look.colour if named else "none",
            edgecolors=INK if named else look.colour, linewidths=0.7, zorder=3,
            label=in_picture(name),
        )  # fmt: skip
    if len(groups) > 1:
        axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.01, 1), fontsize=9)
    axes.margins(0.12)
    axes.autoscale_view()
    if named:
        name_points(axes, [point for each in groups.values() for point in each])
    axes.set_xlabel(in_picture(xlabel))
    axes.set_ylabel(in_picture(ylabel))
    parts = []
    for name, each in groups.items():
        if named:
            words = [f"{word} ({plain_number(x)}, {plain_number(y)})" for x, y, word in each]
            parts.append(f"{name}: {', '.join(words)}")
        else:
            parts.append(f"{name}: {len(each):,} points, correlation {_correlation(each)}")
    alt = f"{ylabel} over {xlabel}. " + "; ".join(parts) + "."
    rows = [
        [name, word, plain_number(x), plain_number(y)]
        for name, each in groups.items() if named for x, y, word in each
    ] or [[name, f"{len(each):,} points", "correlation", _correlation(each)]
          for name, each in groups.items()]  # fmt: skip
    heads = ["group", "point", xlabel, ylabel]
    return Picture(title, svg_of(figure, title, alt), alt, caption, heads, rows)


def _correlation(points: Sequence[tuple[float, float, str]]) -> str:
    import numpy as np

    x, y = np.array([[a, b] for a, b, _ in points], dtype=float).T
    if len(x) < 3 or not x.std() or not y.std():
        return "-"
    return f"{np.corrcoef(x, y)[0, 1]:.2f}"


def box_picture(
    title: str, groups: Mapping[str, Sequence[float]], xlabel: str, ylabel: str
) -> Picture | None:
    """Draw a box for each group of numbers, one number a seed, and the numbers themselves."""
    groups = {name: list(each) for name, each in groups.items() if each}
    if not groups:
        return None
    import numpy as np

    figure, (axes,) = new_figure(height=max(HEIGHT, 0.9 + _ROW * len(groups)))
    for number, each in enumerate(groups.values()):
        look = Look.of(number)
        if len(each) > 2:
            drawn = axes.boxplot(
                [each], positions=[number], widths=0.5, patch_artist=True, showfliers=False,
                orientation="horizontal", medianprops={"color": INK, "linewidth": 1.6},
                whiskerprops={"color": INK}, capprops={"color": INK},
            )  # fmt: skip
            for box in drawn["boxes"]:
                box.set(facecolor=look.colour, alpha=0.45, edgecolor=INK, hatch=look.hatch)
        shift = np.linspace(-0.12, 0.12, len(each)) if len(each) > 1 else np.zeros(1)
        axes.plot(
            each, number + shift, linestyle="", marker=look.marker, markersize=4.5, color=INK,
            markerfacecolor="none", zorder=4,
        )  # fmt: skip
    names = [in_picture(f"{name}, n = {len(each)}") for name, each in groups.items()]
    axes.set_yticks(range(len(groups)), names)
    axes.invert_yaxis()  # the first one above
    axes.grid(axis="x")
    axes.grid(visible=False, axis="y")
    axes.set_ylabel(xlabel)
    axes.set_xlabel(ylabel)
    heads = [xlabel, "seeds", "lowest", "first quarter", "median", "third quarter", "highest"]
    rows = [
        [name, str(len(each)), *[plain_number(float(np.percentile(each, p)))
                                 for p in (0, 25, 50, 75, 100)]]
        for name, each in groups.items()
    ]  # fmt: skip
    parts = [f"{row[0]}: median {row[4]}, from {row[2]} to {row[6]}, n = {row[1]}" for row in rows]
    alt = f"{ylabel} of each seed, by {xlabel}. " + "; ".join(parts) + "."
    caption = "Each mark is a seed; a box, of three seeds or more, reaches from quarter to quarter."
    return Picture(title, svg_of(figure, title, alt), alt, caption, heads, rows)


def bars_picture(
    title: str,
    groups: Mapping[str, Mapping[str, float]],
    xlabel: str,
    ylabel: str,
    caption: str = "",
) -> Picture | None:
    """Draw bars side by side: the height of each place, by the name of the group."""  # fmt: skip
    groups = {name: dict(each) for name, each in groups.items() if each}
    if not groups:
        return None
    figure, (axes,) = new_figure()
    places = list(dict.fromkeys(place for each in groups.values() for place in each))
    width = 0.8 / len(groups)
    for number, (name, each) in enumerate(groups.items()):
        look = Look.of(number)
        x = [at + (number + 0.5) * width - 0.4 for at in range(len(places))]
        values = [each.get(place, 0.0) for place in places]
        bars = axes.bar(
            x, values, width * 0.94, label=in_picture(name), color=look.colour, edgecolor=INK,
            hatch=look.hatch, linewidth=0.7, alpha=0.8,
        )  # fmt: skip
        if len(places) * len(groups) <= 18:
            axes.bar_label(bars, [plain_number(value) for value in values], padding=2, fontsize=8)
    long = max(map(len, places)) * len(places) > 80
    axes.set_xticks(range(len(places)), [*map(in_picture, places)], rotation=30 if long else 0,
                    ha="right" if long else "center")  # fmt: skip
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    if len(groups) > 1:
        axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.01, 1), fontsize=9)
    rows = [
        [place, *[plain_number(each.get(place)) for each in groups.values()]] for place in places
    ]
    parts = []
    for name, each in groups.items():
        top = max(each, key=lambda place: each[place])
        parts.append(f"{name}: most at {top} with {plain_number(each[top])}")
    alt = f"{ylabel} by {xlabel}. " + "; ".join(parts) + "."
    return Picture(title, svg_of(figure, title, alt), alt, caption, [xlabel, *groups], rows)


def density_picture(
    title: str, panels: Mapping[str, Mapping[str, Sequence[float]]], xlabel: str, caption: str = ""
) -> Picture | None:
    """Draw the density of numbers by group, a panel for each of several things.

    Args:
        title: Of the picture.
        panels: Numbers by group, by the name of the panel.
        xlabel: What the numbers are.
        caption: Below the picture.
    """
    import numpy as np
    from scipy.stats import gaussian_kde

    panels = {
        name: {g: [float(v) for v in values] for g, values in each.items() if len(set(values)) > 2}
        for name, each in panels.items()
    }
    panels = {name: each for name, each in panels.items() if each}
    if not panels:
        return None
    every = [v for each in panels.values() for values in each.values() for v in values]
    low, high = min(every), max(every)
    x = np.linspace(low - 0.05 * (high - low), high + 0.05 * (high - low), 200)
    figure, axes = new_figure(len(panels), height=2.8 if len(panels) > 1 else HEIGHT)
    rows, parts = [], []
    names = list(dict.fromkeys(group for each in panels.values() for group in each))
    looks = {group: Look.of(number) for number, group in enumerate(names)}
    for here, (name, each) in zip(axes, panels.items(), strict=True):
        for group, values in each.items():
            look = looks[group]
            y = gaussian_kde(values)(x)
            top = int(y.argmax())
            marks = sorted({max(top - 9, 0), top, min(top + 9, len(x) - 1)})
            here.plot(
                x, y, color=look.colour, linestyle=look.dashes, linewidth=1.6, marker=look.marker,
                markevery=marks, markersize=5, label=in_picture(group),
            )  # fmt: skip
            mean, deviation = float(np.mean(values)), float(np.std(values))
            count = f"{len(values):,}"
            rows.append([name, group, count, plain_number(mean), plain_number(deviation)])
            parts.append(
                f"{name}, {group}: mean {plain_number(mean)}, deviation {plain_number(deviation)}"
            )
        if here is axes[0]:
            here.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.01, 1), fontsize=9,
                        handlelength=3.5)  # fmt: skip
        here.set_ylabel("density")
        here.set_title(in_picture(name), loc="left", fontsize=10)
        if here is axes[-1]:
            here.set_xlabel(xlabel)
    figure.subplots_adjust(hspace=0.4)
    alt = f"Density of {xlabel}. " + "; ".join(parts) + "."
    heads = ["", "group", "numbers", "mean", "deviation"]
    return Picture(title, svg_of(figure, title, alt), alt, caption, heads, rows)
