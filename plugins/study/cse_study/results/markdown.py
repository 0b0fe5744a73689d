"""A study as a page of Markdown: its tables and claims, and the command and runs behind them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from cse_study.definition.reading import Definition
from cse_study.results.rows import Row
from cse_study.results.text_table import Table


def page_of(
    definition: Definition,
    tables: Sequence[Table],
    rows: Sequence[Row],
    command: str,
    pictures: Mapping[str, str] | None = None,
) -> str:
    """Return the page; nothing on it is written by hand but what the study's file says.

    Args:
        definition: The study.
        tables: Scores and claims.
        rows: A row a run.
        command: What writes the page.
        pictures: Titles of the figures by the names of their files beside the page.
    """
    study = definition.study
    parts = [f"# {study.summary}", f"Written by `{command}`."]
    parts += [f"{definition.paper}, {study.source}."] if definition.paper else []
    parts += [study.note.strip()] if study.note else []
    parts += [f"![{title}]({file})" for file, title in (pictures or {}).items()]
    for table in tables:
        parts += [f"## {table.title}", _markdown(table), table.caption]
    parts.append(_provenance(rows))
    return "\n\n".join(part for part in parts if part) + "\n"


def _markdown(table: Table) -> str:
    lines = [table.heads, ["---"] * len(table.heads), *table.rows]
    return "\n".join(
        "| " + " | ".join(each.replace("|", "\\|") for each in line) + " |" for line in lines
    )


def _provenance(rows: Sequence[Row]) -> str:
    """Return what the runs ran on, each fact once."""
    done = [row for row in rows if row.status == "done"]
    models = {
        _public(str(row.options["model.name"])) for row in done if "model.name" in row.options
    }
    words = [f"model: {', '.join(sorted(models))}"] if models else []
    for name in (
        "steps",
        "commit",
        "processor",
        "device",
        "precision",
        "threads",
        "scored_by",
        "setting",
    ):
        found = sorted({_public(str(row.facts[name])) for row in done if row.facts.get(name)})
        words += [f"{name.replace('_', ' ')}: {', '.join(found)}"] if found else []
    seconds = sum(float(row.facts.get("seconds") or 0) for row in done)
    return (
        f"{len(done)} rows of finished runs, {seconds / 3600:.1f} hours of training; "
        + "; ".join(words)
    )


def _public(fact: str) -> str:
    """Return a fact without the places of files: a page is read on other machines."""
    return " ".join(
        os.path.basename(word) if os.path.isabs(word) else word for word in fact.split()
    )
