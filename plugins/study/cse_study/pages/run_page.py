"""The page of runs: their settings, scores and pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cse_cli.options.flags import Choice
from cse_cli.plugins.installed import Installed
from cse_cli.training.plan_text import plan_dict
from cse_cli.training.resolving import resolve_choice
from cse_core.errors import CseError
from cse_core.recipes.composition import Composition
from cse_core.runtime.model_files import RUN_FILE
from cse_study.pages.comparing import different_settings, scores_beside
from cse_study.pages.diagram import plan_picture
from cse_study.pages.drawing import plain_number
from cse_study.pages.gold_pictures import gold_densities, gold_scatters
from cse_study.pages.grouping import Group, groups_of
from cse_study.pages.page import Page, Section
from cse_study.pages.run_files import Run
from cse_study.pages.run_lengths import composition_lengths
from cse_study.pages.run_pictures import (
    alignment_picture,
    dev_picture,
    lengths_picture,
    loss_picture,
    negatives_pictures,
    pairs_of,
    spectra_of,
    spectrum_picture,
    spread_picture,
)
from cse_study.results.text_table import Table

KINDS: Mapping[str, str] = {
    "loss": "loss over steps, of metrics.jsonl",
    "dev": "dev scores over steps, of metrics.jsonl",
    "spread": "uniformity and effective rank over steps, of metrics.jsonl",
    "alignment": "alignment against uniformity, of dev scores and cse eval",
    "gold": "cosine by gold score, of files that cse eval --pairs-out wrote",
    "spectrum": "singular values of the vectors, of cse eval",
    "negatives": "negatives that an anchor saw, by source and age, of metrics.jsonl",
    "lengths": "length of the training texts, of a sample of the data where it is still there",
    "plan": "views, encoders, stores and losses, of run.toml",
}
"""What a page of runs shows, and what it is read from."""


def run_page(runs: Sequence[Run], wanted: Sequence[str], plugins: Installed) -> Page:
    """Return the page of runs.

    Args:
        runs: The runs.
        wanted: Which of :data:`KINDS`.
        plugins: The installed plugins, to read data and to draw plans.
    """
    groups = groups_of(runs)
    page = Page("Runs: " + ", ".join(group.label for group in groups[:6]))
    page.title += f" and {len(groups) - 6} more" if len(groups) > 6 else ""
    page.lead = ["Runs that differ in their seed alone are drawn as one: mean, and standard "
                 "deviation over seeds."] if len(groups) < len(runs) else []  # fmt: skip
    page.sections = [_runs(groups), _settings(groups), _scores(groups), _training(groups, wanted)]
    vectors = Section("Vectors")
    if "alignment" in wanted:
        vectors.add(alignment_picture(groups))
    if "spectrum" in wanted:
        vectors.add(spectrum_picture(spectra_of(groups)))
    if "gold" in wanted:
        pairs = pairs_of(groups)
        vectors.pictures += gold_scatters(pairs) + gold_densities(pairs)
    page.sections += [vectors, *_plans(groups, wanted, plugins)]
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
    section = Section("Settings that differ")
    if found and len(groups) > 1:
        heads = ["setting", *(group.label for group in groups)]
        section.tables.append(
            Table(heads, [[path, *map(_plain, values)] for path, values in found.items()])
        )
    return section


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_plain, value))
    return Path(value).name if isinstance(value, str) and value.startswith("/") else str(value)


def _scores(groups: Sequence[Group]) -> Section:
    import statistics

    runs = [run for group in groups for run in group.runs]
    found = scores_beside(runs)
    rows = []
    for name, values in found.items():
        cells, place = [], 0
        for group in groups:
            own = [value for value in values[place : place + group.seeds] if value is not None]
            place += group.seeds
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


def _training(groups: Sequence[Group], wanted: Sequence[str]) -> Section:
    section = Section("Training")
    for name, draw in (("loss", loss_picture), ("dev", dev_picture), ("spread", spread_picture)):
        if name in wanted:
            section.add(draw(groups))
    if "negatives" in wanted:
        section.pictures += negatives_pictures(groups)
    return section


def _plans(groups: Sequence[Group], wanted: Sequence[str], plugins: Installed) -> list[Section]:
    texts, plans = Section("Texts"), Section("Plans")
    lengths: dict[str, list[int]] = {}
    measured: set[tuple[str, str]] = set()
    drawn: dict[str, str] = {}
    for group in groups if {"lengths", "plan"} & set(wanted) else ():
        run = group.runs[0]
        try:
            composition = _composed(run, plugins)
        except CseError as error:
            plans.notes.append(f"{group.label}: no plan can be made any more: {error}")
            continue
        known = run.texts, composition.model.name
        if "lengths" in wanted and known not in measured:
            measured.add(known)
            name = ", ".join(Path(each).name for each in composition.data.path)
            name = f"{name}, {group.label}" if name in lengths else name
            if found := composition_lengths(composition, plugins):
                lengths[name] = found
        if "plan" in wanted:
            picture = plan_picture(f"Plan of {group.label}", plan_dict(composition))
            first = drawn.setdefault(picture.alt, group.label)
            if first == group.label:
                plans.pictures.append(picture)
            else:
                plans.notes.append(f"{group.label} has the parts of {first}.")
    texts.add(lengths_picture(lengths))
    return [texts, plans]


def _composed(run: Run, plugins: Installed) -> Composition:
    return resolve_choice(Choice(recipe=str(run.path / RUN_FILE)), plugins)
