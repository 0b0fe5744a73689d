"""The page of a study: its table with the paper's numbers, and the figures of its file."""

from __future__ import annotations

from collections.abc import Iterator

from cse_study.definition.schema import Figure
from cse_study.pages.drawing import Picture
from cse_study.pages.grouping import find_key, over_steps
from cse_study.pages.lines import lines_picture
from cse_study.pages.page import Page, Section
from cse_study.pages.run_pictures import loss_picture
from cse_study.pages.study_figures import FIGURES, number_of
from cse_study.pages.study_results import Results
from cse_study.pages.texts import text_tables
from cse_study.results.layout import claims_table, score_tables
from cse_study.results.text_table import Table


def study_page(results: Results) -> Page:
    """Return the page of a study."""
    definition = results.definition
    study = definition.study
    page = Page(f"{definition.name}: {study.summary}")
    if definition.paper:
        page.lead.append(", ".join(filter(None, [definition.paper, study.source])))
    if study.paper.metric:
        model = f", {study.paper.model}" if study.paper.model else ""
        page.lead.append(f"The paper reports {study.paper.metric}{model}.")
    if study.note:
        page.lead.append(study.note)
    missing = [row for row in results.rows if row.status != "done"]
    if missing:
        page.lead.append(
            f"{len(results.done)} of {len(results.rows)} rows are finished; "
            "what is missing is left out."
        )
    page.sections.append(Section("Results", tables=score_tables(definition, results.tables)))
    if claims := claims_table(results.verdicts):
        page.sections.append(Section("Claims", tables=[claims]))
    figures = Section("Figures")
    for figure, drawn in _drawn(results):
        figures.pictures += drawn
        figures.tables += text_tables(results, figure) if figure.type == "table" else []
        if not drawn and figure.type != "table":
            what = figure.title or figure.type
            figures.notes.append(f"There are no numbers for the figure {what!r} yet.")
    if results.elsewhere:
        figures.notes.append(
            f"{results.elsewhere} runs were unpacked: their lines over steps, pairs and vectors "
            "are where they were made."
        )
    page.sections += [figures, _training(results), _ran(results)]
    return page


def study_pictures(results: Results) -> list[Picture]:
    """Return the figures of a study that have numbers."""
    return [picture for _, drawn in _drawn(results) for picture in drawn]


def _drawn(results: Results) -> Iterator[tuple[Figure, list[Picture]]]:
    for figure in results.definition.study.figures or _standard(results):
        yield figure, FIGURES[figure.type](results, figure) if results.done else []


def _standard(results: Results) -> list[Figure]:
    """Return the figures of a study that names none: its numbers along the longest axis."""
    axes = results.definition.study.axes
    numeric = [axis for axis in axes if all(number_of(v) is not None
               for v in next(iter(axis.values.values())))]  # fmt: skip
    if not numeric:
        return []
    longest = max(numeric, key=lambda axis: axis.size)
    if longest.size < 3:
        return []
    return [Figure(type="curve", x=longest.called)]


def _training(results: Results) -> Section:
    section = Section("Training")
    groups = [group for point in results.points if (group := results.group(point)) is not None]
    if groups and len(groups) <= 8:
        section.add(loss_picture(groups))
        dev = over_steps(groups, lambda run: find_key(run, "dev"))
        section.add(lines_picture("Dev score", {"dev score": dev}, "step"))
    return section


def _ran(results: Results) -> Section:
    """Return what the runs ran on, once where it is the same of all."""
    names = ("setting", "scored_by", "steps", "processor", "device", "precision", "commit")
    rows = []
    for name in names:
        values = dict.fromkeys(str(row.facts[name]) for row in results.done
                               if row.facts.get(name) not in (None, ""))  # fmt: skip
        if values:
            rows.append([name.replace("_", " "), ", ".join(list(values)[:6])])
    seeds = dict.fromkeys(str(row.seed) for row in results.done)
    if seeds:
        rows.append(["seeds", ", ".join(seeds)])
    section = Section("How it was run")
    if rows:
        section.tables.append(Table(["", ""], rows))
    return section
