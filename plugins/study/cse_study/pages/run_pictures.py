"""The pictures of runs, each from what their folders hold."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cse_study.measures.item_files import Cosines, read_cosines
from cse_study.pages.charts import bars_picture, scatter_picture
from cse_study.pages.drawing import Picture, Series
from cse_study.pages.gold_pictures import by_set
from cse_study.pages.grouping import Group, find_key, over_steps
from cse_study.pages.lines import lines_picture
from cse_study.pages.run_files import Run

_SOURCES = re.compile(r"(?P<loss>.+)\.negatives\.(?P<source>[^.]+)(?P<age>\.age)?")
_NO_SOURCE = ("weight_zero", "masked")
_WIDE = 30
"""Ratio of the largest to the smallest loss from which the axis is logarithmic."""
LENGTHS = (8, 16, 32, 64, 128, 256, 512)
"""Longest length of each bar of a histogram, in tokens."""


def loss_picture(groups: Sequence[Group]) -> Picture | None:
    """Draw the losses of runs over each other."""
    series = over_steps(groups, "loss")
    values = [y for each in series for y in each.y if y is not None]
    wide = bool(values) and min(values) > 0 and max(values) / min(values) > _WIDE
    return lines_picture("Loss", {"loss": series}, "step", log=wide)


def dev_picture(groups: Sequence[Group]) -> Picture | None:
    """Draw the score that chooses the checkpoint over steps, a panel for each dev set."""
    names = dict.fromkeys(name for group in groups for run in group.runs for name in run.dev_names)
    panels = {name: over_steps(groups, name) for name in names}
    return lines_picture("Dev scores", panels, "step")


def spread_picture(groups: Sequence[Group]) -> Picture | None:
    """Draw uniformity and effective rank on the dev set over steps."""
    panels = {
        name: over_steps(groups, lambda run, name=name: find_key(run, name))  # type: ignore[misc]
        for name in ("uniformity", "effective_rank")
    }
    return lines_picture("Spread of the vectors", panels, "step",
                         caption="Of the dev set that chooses, or of the batch.")  # fmt: skip


def alignment_picture(groups: Sequence[Group]) -> Picture | None:
    """Draw alignment against uniformity of finished runs, on each set where both are known."""
    found: dict[str, list[tuple[float, float, str]]] = {}
    for group in groups:
        for run in group.runs:
            for name, (alignment, uniformity) in _of_sets(run).items():
                word = name if group.seeds == 1 else f"{name}, seed {_seed(run)}"
                found.setdefault(group.label, []).append((alignment, uniformity, word))
    return scatter_picture(
        "Alignment against uniformity", found, "alignment (lower: pairs are closer)",
        "uniformity (lower: more even)", "A mark for each set that was measured.",
    )  # fmt: skip


def _of_sets(run: Run) -> dict[str, tuple[float, float]]:
    numbers: dict[str, dict[str, float]] = {}
    for name, value in run.result.get("scores", {}).items():
        head, _, number = name.rpartition(".")
        numbers.setdefault(head, {})[number] = value
    for score in run.scores:
        numbers.setdefault(score.set, {})[score.number] = score.value
    return {
        name: (float(each["alignment"]), float(each["uniformity"]))
        for name, each in numbers.items()
        if "alignment" in each and "uniformity" in each
    }


def _seed(run: Run) -> Any:
    return run.settings.get("train", {}).get("seed", "-")


def spectrum_picture(spectra: Mapping[str, Mapping[str, Sequence[float]]]) -> Picture | None:
    """Draw singular values, a panel for each set.

    Args:
        spectra: Singular values by the name of the line, by the name of the set.
    """
    # Sets that most runs were scored on; several hardly differ.
    most = max((len(each) for each in spectra.values()), default=0)
    common = [name for name, each in spectra.items() if len(each) == most]
    tests = sorted(common, key=lambda name: ".test" not in name)[:2]
    panels = {
        name: [Series(label, list(range(1, len(values) + 1)), [value or None for value in values])
               for label, values in each.items()]
        for name, each in spectra.items()
        if name in tests
    }  # fmt: skip
    return lines_picture(
        "Spectrum of the vectors", panels, "number of the singular value", log=True,
        caption="Singular values of the sentence vectors, the largest put to 1; those of 0 are "
        "left out.",
    )  # fmt: skip


def spectra_of(groups: Sequence[Group]) -> dict[str, dict[str, Sequence[float]]]:
    """Return the singular values that evaluations kept, of the first run of each group."""
    found: dict[str, dict[str, Sequence[float]]] = {}
    for group in groups:
        for evaluation in group.runs[0].evaluations:
            for name, values in spectra_in(evaluation):
                found.setdefault(name, {})[group.label] = values
    return found


def spectra_in(evaluation: Mapping[str, Any]) -> Iterator[tuple[str, Sequence[float]]]:
    """Yield the singular values of each set of an evaluation."""
    for name, content in evaluation.get("results", {}).items():
        values = content.get("singular_values") if isinstance(content, Mapping) else None
        if isinstance(values, Mapping) and values.get("values"):
            yield name, values["values"]


def pairs_of(groups: Sequence[Group]) -> dict[str, Cosines]:
    """Return gold scores and cosines of each group by set, where ``--pairs-out`` files remain.

    A file that was written again since, for another run, is not this run's.
    """
    return by_set(
        (group.label, read_cosines(Path(evaluation["options"]["pairs_out"])))
        for group in groups
        for evaluation in group.runs[0].evaluations
        if "pairs_sha256" in evaluation
        and _digest(evaluation["options"]["pairs_out"]) == evaluation["pairs_sha256"]
    )


def _digest(file: str) -> str:
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except OSError:
        return ""


def negatives_pictures(groups: Sequence[Group]) -> list[Picture]:
    """Draw how many negatives an anchor saw from each source over steps, and how old they were."""
    counts: dict[str, list[Series]] = {}
    ages: dict[str, list[Series]] = {}
    for group in groups:
        keys = dict.fromkeys(key for run in group.runs for line in run.lines for key in line)
        for key in keys:
            found = _SOURCES.fullmatch(key)
            if found is None or found["source"] in _NO_SOURCE:
                continue
            for series in over_steps([group], key):
                if not any(series.y):
                    continue
                words = [group.label if len(groups) > 1 else "", found["source"]]
                named = Series(", ".join(filter(None, words)), series.x, series.y, series.spread,
                               series.seeds)  # fmt: skip
                (ages if found["age"] else counts).setdefault(found["loss"], []).append(named)
    pictures = [
        lines_picture(
            "Negatives that an anchor saw",
            {f"negatives of {name}": each for name, each in counts.items()}, "step",
        ),
        lines_picture(
            "Age of the negatives",
            {f"steps, {name}": each for name, each in ages.items()}, "step",
            caption="Mean over the kept negatives of an anchor: steps since they were encoded.",
        ),
    ]  # fmt: skip
    return [picture for picture in pictures if picture is not None]


def lengths_picture(lengths: Mapping[str, Sequence[int]]) -> Picture | None:
    """Draw how long texts are, in shares of bars that double in width."""
    bars: dict[str, dict[str, float]] = {}
    for name, each in lengths.items():
        if not each:
            continue
        shares, low = {}, 0
        for high in (*LENGTHS, None):
            inside = sum(low < count and (high is None or count <= high) for count in each)
            label = f"> {low}" if high is None else f"{low + 1}-{high}"
            shares[label] = round(100 * inside / len(each), 2)
            low = high or low
        while len(shares) > 1 and not list(shares.values())[-1]:
            shares.popitem()
        bars[f"{name} ({len(each):,} texts)"] = shares
    return bars_picture("Length of the texts", bars, "tokens, special ones among them",
                        "share of the texts, %")  # fmt: skip
