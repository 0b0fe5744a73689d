"""The page of runs: their settings, scores and pictures."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cse_cli.options.flags import Choice
from cse_cli.plugins.installed import Installed
from cse_cli.training.plan import plan_dict
from cse_cli.training.resolving import resolve_choice
from cse_core.errors import CseError
from cse_core.runtime.model_files import RUN_FILE
from cse_study.pages import run_pictures as pictures
from cse_study.pages.diagram import plan_picture
from cse_study.pages.page import Page, Section
from cse_study.pages.runs import Group, Run, different_settings, groups_of, scores_beside
from cse_study.results.text_table import Table, plain_number

KINDS: Mapping[str, str] = {
    "loss": "loss over steps, of metrics.jsonl",
    "dev": "dev scores over steps, of metrics.jsonl",
    "spread": "uniformity and effective rank over steps, of metrics.jsonl",
    "alignment": "alignment against uniformity, of dev scores and cse eval",
    "gold": "cosine by gold score, of files that cse eval --pairs-out wrote",
    "spectrum": "singular values of the vectors, of cse eval",
    "negatives": "negatives that an anchor saw, by source and age, of metrics.jsonl",
    "plan": "views, encoders, stores and losses, of run.toml",
}
"""What a page of runs shows, and what it is read from."""


def run_page(runs: Sequence[Run], wanted: Sequence[str], plugins: Installed) -> Page:
    """Return the page of runs.

    Args:
        runs: The runs.
        wanted: Which of :data:`KINDS`.
        plugins: The installed plugins, to draw plans.
    """
    groups = groups_of(runs)
    page = Page("Runs: " + ", ".join(group.label for group in groups[:6]))
    page.title += f" and {len(groups) - 6} more" if len(groups) > 6 else ""
    page.lead = ["Runs that differ in their seed alone are drawn as one: mean, and standard "
                 "deviation over seeds."] if len(groups) < len(runs) else []  # fmt: skip
    training, vectors = Section("Training"), Section("Vectors")
    if "loss" in wanted:
        training.add(pictures.loss_picture(groups))
    if "dev" in wanted:
        training.add(pictures.dev_picture(groups))
    if "spread" in wanted:
        training.add(pictures.spread_picture(groups))
    if "negatives" in wanted:
        training.add(*pictures.negatives_pictures(groups))
    if "alignment" in wanted:
        vectors.add(pictures.alignment_picture(groups))
    if "spectrum" in wanted:
        found = [(group.label, each) for group in groups for each in group.runs[0].evaluations]
        vectors.add(pictures.spectrum_picture(pictures.spectra_of(found)))
    if "gold" in wanted:
        pairs = pictures.by_set(pictures.pairs_of(groups))
        vectors.add(*pictures.gold_scatters(pairs), *pictures.gold_densities(pairs))
    page.sections = [_runs(groups), _settings(groups), _scores(groups), training, vectors]
    page.sections += [_plans(groups, plugins)] if "plan" in wanted else []
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


def _plans(groups: Sequence[Group], plugins: Installed) -> Section:
    section = Section("Plans")
    drawn: dict[str, str] = {}
    for group in groups:
        try:
            choice = Choice(recipe=str(group.runs[0].path / RUN_FILE))
            composition = resolve_choice(choice, plugins)
        except CseError as error:
            section.notes.append(f"{group.label}: no plan can be made any more: {error}")
            continue
        picture = plan_picture(f"Plan of {group.label}", plan_dict(composition))
        first = drawn.setdefault(picture.svg, group.label)
        if first == group.label:
            section.add(picture)
        else:
            section.notes.append(f"{group.label} has the parts of {first}.")
    return section
