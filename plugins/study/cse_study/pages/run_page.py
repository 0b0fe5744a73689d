"""The page of runs: pictures, each from what their folders hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cse_study.pages.figures import Picture, Series, lines_picture, scatter_picture
from cse_study.pages.page import Page
from cse_study.pages.runs import Group, Run, groups_of, over_steps

_LOG_RATIO = 30
"""Ratio of the largest to the smallest loss from which the axis is logarithmic."""


def run_page(runs: Sequence[Run]) -> Page:
    """Return the page of runs, with every picture that their folders have numbers for."""
    groups = groups_of(runs)
    page = Page("Runs: " + ", ".join(group.label for group in groups[:6]))
    page.title += f" and {len(groups) - 6} more" if len(groups) > 6 else ""
    page.lead = ["Runs that differ only in their seed are drawn as one: mean and standard "
                 "deviation over seeds."] if len(groups) < len(runs) else []  # fmt: skip
    spectra = [(group.label, entry) for group in groups for entry in group.runs[0].evaluations]
    losses = over_steps(groups, "loss")
    values = [y for series in losses for y in series.y if y is not None]
    wide = bool(values) and min(values) > 0 and max(values) / min(values) > _LOG_RATIO
    dev = dict.fromkeys(name for group in groups for run in group.runs for name in run.dev_names)
    spread = {name: over_steps(groups, name) for name in ("uniformity", "effective_rank")}
    page.add(
        lines_picture("Loss", {"loss": losses}, "step", yscale="log" if wide else "linear"),
        lines_picture("Dev scores", {name: over_steps(groups, name) for name in dev}, "step"),
        lines_picture("Spread of the vectors", spread, "step",
                      caption="Of the dev set that chooses, or of the batch."),
        alignment_picture(groups),
        spectrum_picture(spectra),
    )  # fmt: skip
    return page


def alignment_picture(groups: Sequence[Group]) -> Picture | None:
    """Draw alignment against uniformity of finished runs, on each set where both are known."""
    points: dict[str, list[tuple[float, float, str]]] = {}
    for group in groups:
        for run in group.runs:
            numbers = dict(run.result.get("scores", {}))
            numbers |= {score.name: score.value for score in run.scores}
            for set_ in dict.fromkeys(name.rpartition(".")[0] for name in numbers):
                x, y = numbers.get(f"{set_}.alignment"), numbers.get(f"{set_}.uniformity")
                if x is not None and y is not None:
                    word = set_ if len(group.runs) == 1 else f"{set_}, seed {run.seed}"
                    points.setdefault(group.label, []).append((float(x), float(y), word))
    return scatter_picture(
        "Alignment against uniformity", points, "alignment (lower: pairs are closer)",
        "uniformity (lower: more even)", "A mark for each set that was measured.",
    )  # fmt: skip


def spectrum_picture(found: Iterable[tuple[str, Mapping[str, Any]]]) -> Picture | None:
    """Draw singular values, a panel for each set, given evaluations with the names of the lines."""
    spectra: dict[str, dict[str, Sequence[float]]] = {}
    for label, evaluation in found:
        for name, content in evaluation.get("results", {}).items():
            values = content.get("singular_values") if isinstance(content, Mapping) else None
            if isinstance(values, Mapping) and values.get("values"):
                spectra.setdefault(name, {})[label] = values["values"]
    # Of the sets that most runs were scored on, two: several hardly differ.
    most = max((len(part) for part in spectra.values()), default=0)
    common = [name for name, part in spectra.items() if len(part) == most]
    panels = {
        name: [Series(label, range(1, len(values) + 1), [value or None for value in values])
               for label, values in spectra[name].items()]
        for name in sorted(common, key=lambda name: ".test" not in name)[:2]
    }  # fmt: skip
    caption = "Singular values of the sentence vectors, the largest put to 1, without those of 0."
    return lines_picture("Spectrum of the vectors", panels, "number of the singular value",
                         yscale="log", caption=caption)  # fmt: skip
