"""The page of runs: their settings and scores, and pictures, each from what their folders hold."""

from __future__ import annotations

import hashlib
import re
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cse_study.measures import Cosines, read_cosines
from cse_study.pages.figures import Picture, Series, lines_picture, scatter_picture
from cse_study.pages.page import Page, Section
from cse_study.pages.runs import (
    Group,
    Run,
    different_settings,
    groups_of,
    over_steps,
    scores_beside,
)
from cse_study.results.table import Table, plain_number

_SOURCES = re.compile(r"(?P<loss>.+)\.negatives\.(?P<source>[^.]+)(?P<age>\.age)?")
_LOG_RATIO = 30
"""Ratio of the largest to the smallest loss from which the axis is logarithmic."""


def run_page(runs: Sequence[Run]) -> Page:
    """Return the page of runs, with every picture that their folders have numbers for."""
    groups = groups_of(runs)
    page = Page("Runs: " + ", ".join(group.label for group in groups[:6]))
    page.title += f" and {len(groups) - 6} more" if len(groups) > 6 else ""
    page.lead = ["Runs that differ in their seed alone are drawn as one: mean, and standard "
                 "deviation over seeds."] if len(groups) < len(runs) else []  # fmt: skip
    spectra = [(group.label, each) for group in groups for each in group.runs[0].evaluations]
    losses = over_steps(groups, "loss")
    values = [y for series in losses for y in series.y if y is not None]
    wide = bool(values) and min(values) > 0 and max(values) / min(values) > _LOG_RATIO
    dev = dict.fromkeys(name for group in groups for run in group.runs for name in run.dev_names)
    spread = {name: over_steps(groups, name) for name in ("uniformity", "effective_rank")}
    training, vectors = Section("Training"), Section("Vectors")
    training.add(
        lines_picture("Loss", {"loss": losses}, "step", yscale="log" if wide else "linear"),
        lines_picture("Dev scores", {name: over_steps(groups, name) for name in dev}, "step"),
        lines_picture("Spread of the vectors", spread, "step",
                      caption="Of the dev set that chooses, or of the batch."),
        *negatives_pictures(groups),
    )  # fmt: skip
    vectors.add(alignment_picture(groups), spectrum_picture(spectra_of(spectra)),
                *gold_scatters(by_set(pairs_of(groups))))  # fmt: skip
    page.sections = [_runs(groups), _settings(groups), _scores(groups), training, vectors]
    return page


def _runs(groups: Sequence[Group]) -> Section:
    heads = ["run", "recipe", "model", "data", "rows", "steps", "seeds", "state"]
    rows = []
    for group in groups:
        about = [run.about() for run in group.runs]
        first = about[0]
        states = dict.fromkeys(str(each["state"]) for each in about)
        steps = dict.fromkeys(plain_number(each["steps"]) for each in about)
        rows.append([
            group.label, first["recipe"], Path(first["model"]).name,
            ", ".join(Path(each).name for each in first["data"]), plain_number(first["rows"]),
            ", ".join(steps), ", ".join(str(each["seed"]) for each in about), ", ".join(states),
        ])  # fmt: skip
    return Section("Runs", tables=[Table(heads, rows)])


def _settings(groups: Sequence[Group]) -> Section:
    found = different_settings([group.runs[0] for group in groups])
    heads = ["setting", *(group.label for group in groups)]
    rows = [[path, *map(_plain, values)] for path, values in found.items()]
    return Section("Settings that differ", tables=[Table(heads, rows)] if rows else [])


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_plain, value))
    return Path(value).name if isinstance(value, str) and value.startswith("/") else str(value)


def _scores(groups: Sequence[Group]) -> Section:
    rows = []
    for name, values in scores_beside([run for group in groups for run in group.runs]).items():
        cells, left = [], iter(values)
        for group in groups:
            own = [value for _, value in zip(group.runs, left, strict=False) if value is not None]
            text = "-" if not own else f"{statistics.fmean(own):.2f}"
            text += f" ± {statistics.stdev(own):.2f}" if len(own) > 1 else ""
            cells.append(f"{text} (n = {len(own)})" if own else text)
        rows.append([name, *cells])
    section = Section("Scores")
    if rows:
        heads = ["score", *(group.label for group in groups)]
        section.tables.append(Table(heads, rows, "Mean, standard deviation over seeds, seeds (n)."))
        if len(groups) > 1:
            section.notes.append("No test was made of these differences: cse study compares runs "
                                 "over seeds and test pairs.")  # fmt: skip
    return section


def alignment_picture(groups: Sequence[Group]) -> Picture | None:
    """Draw alignment against uniformity of finished runs, on each set where both are known."""
    found: dict[str, list[tuple[float, float, str]]] = {}
    for group in groups:
        for run in group.runs:
            numbers = dict(run.result.get("scores", {}))
            numbers |= {score.name: score.value for score in run.scores}
            for set_ in dict.fromkeys(name.rpartition(".")[0] for name in numbers):
                x, y = numbers.get(f"{set_}.alignment"), numbers.get(f"{set_}.uniformity")
                if x is not None and y is not None:
                    word = set_ if len(group.runs) == 1 else f"{set_}, seed {run.seed}"
                    found.setdefault(group.label, []).append((float(x), float(y), word))
    return scatter_picture(
        "Alignment against uniformity", found, "alignment (lower: pairs are closer)",
        "uniformity (lower: more even)", "A mark for each set that was measured.",
    )  # fmt: skip


def spectrum_picture(spectra: Mapping[str, Mapping[str, Sequence[float]]]) -> Picture | None:
    """Draw singular values, a panel for each set.

    Args:
        spectra: Singular values by the name of the line, by the name of the set.
    """
    # Of the sets that most runs were scored on, two: several hardly differ.
    most = max((len(each) for each in spectra.values()), default=0)
    common = [name for name, each in spectra.items() if len(each) == most]
    panels = {
        name: [Series(label, range(1, len(values) + 1), [value or None for value in values])
               for label, values in spectra[name].items()]
        for name in sorted(common, key=lambda name: ".test" not in name)[:2]
    }  # fmt: skip
    caption = "Singular values of the sentence vectors, the largest put to 1, without those of 0."
    return lines_picture("Spectrum of the vectors", panels, "number of the singular value",
                         yscale="log", caption=caption)  # fmt: skip


def spectra_of(found: Iterable[tuple[str, Mapping[str, Any]]]) -> dict[str, dict[str, Any]]:
    """Return singular values by set and label, given evaluations with their label."""
    spectra: dict[str, dict[str, Any]] = {}
    for label, evaluation in found:
        for name, content in evaluation.get("results", {}).items():
            values = content.get("singular_values") if isinstance(content, Mapping) else None
            if isinstance(values, Mapping) and values.get("values"):
                spectra.setdefault(name, {})[label] = values["values"]
    return spectra


def by_set(found: Iterable[tuple[str, Cosines]]) -> dict[str, Cosines]:
    """Return gold scores and cosines by set and label, given those of each label by set."""
    sets: dict[str, dict[str, Any]] = {}
    for label, cosines in found:
        for name, values in cosines.items():
            sets.setdefault(name, {})[label] = values
    return dict(sets)


def pairs_of(groups: Sequence[Group]) -> Iterator[tuple[str, Cosines]]:
    """Yield gold scores and cosines of each group, where ``--pairs-out`` files remain.

    A file that was written again since, for another run, is not this run's.
    """
    for group in groups:
        for evaluation in group.runs[0].evaluations:
            file = Path(evaluation.get("options", {}).get("pairs_out") or "")
            if "pairs_sha256" in evaluation and file.is_file():
                if hashlib.sha256(file.read_bytes()).hexdigest() == evaluation["pairs_sha256"]:
                    yield group.label, read_cosines(file)


def gold_scatters(
    sets: Mapping[str, Cosines], title: str = "", caption: str = ""
) -> list[Picture | None]:
    """Draw pairs by gold score and cosine, a picture for each set."""
    return [
        scatter_picture(
            title or f"Cosine by gold score: {name}",
            {
                label: [(gold, cosine, "") for gold, cosine in zip(*pairs, strict=True)]
                for label, pairs in each.items()
            },
            "gold score", "cosine", caption,
        )
        for name, each in sets.items()
    ]  # fmt: skip


def negatives_pictures(groups: Sequence[Group]) -> list[Picture | None]:
    """Draw how many negatives an anchor saw from each source over steps, and how old they were."""
    counts: dict[str, list[Series]] = {}
    ages: dict[str, list[Series]] = {}
    for group in groups:
        for key in dict.fromkeys(key for run in group.runs for key in run.keys):
            found = _SOURCES.fullmatch(key)
            if found is None or found["source"] in ("weight_zero", "masked"):
                continue
            words = [group.label] * (len(groups) > 1) + [found["source"]]
            panels = ages if found["age"] else counts
            panel = f"steps, {found['loss']}" if found["age"] else f"negatives of {found['loss']}"
            panels.setdefault(panel, []).extend(
                replace(series, label=", ".join(words))
                for series in over_steps([group], key)
                if any(series.y)
            )
    age = "Mean over the kept negatives of an anchor: steps since they were encoded."
    return [lines_picture("Negatives that an anchor saw", counts, "step"),
            lines_picture("Age of the negatives", ages, "step", caption=age)]  # fmt: skip
