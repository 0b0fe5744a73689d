"""``cse data``: what texts there are, where they are looked for, and what is in them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cse_cli.commands.fetch import fetch, fetchable
from cse_cli.commands.pairs import show_pairs
from cse_cli.options.completion import complete_data, complete_model
from cse_cli.plugins.installed import Installed, about, installed
from cse_cli.terminal.console import echo, echo_err, plain_table, say_json, say_table
from cse_cli.texts.given import ColumnsOption, named_columns
from cse_core.errors import CseError, collect_errors, did_you_mean

if TYPE_CHECKING:
    from cse_core.texts import NeededColumns
    from cse_defaults.texts import Data

UNITS = ("sentence", "paragraph", "document")

app = typer.Typer(help="Look at data, and fetch public data sets.")

PathsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH",
        help="Files, folders of documents, installed data sets, or owner/name of the hub.",
        autocompletion=complete_data,
    ),
]
UnitOption = Annotated[
    str, typer.Option(metavar="UNIT", help="What a row is: sentence, paragraph or document.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list")
def list_data(
    context: typer.Context,
    data_dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the suites' files.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """List the installed data sets, and what cse eval would find of each suite."""
    from cse_cli.plugins.folders import DATA_VARIABLE, data_folder

    plugins = installed(context)
    registry = plugins.registry
    folder, origin = data_folder(data_dir)
    if not folder.is_dir() and origin == "--data-dir":
        hint = "name an existing folder"
        raise CseError("is not a folder", where=origin, value=str(folder), hint=hint)
    suites = _suite_files(folder, plugins)
    if json:
        shown = [about(record, "synthetic") for record in registry.datasets().values()]
        places = {
            suite: {name: str(path) if path else None for name, path in files.items()}
            for suite, files in suites.items()
        }
        say_json({"datasets": shown, "folder": str(folder), "suites": places})
        return
    echo("installed data sets:")
    table = plain_table("", ("name", "what it is", "from"))
    for record in registry.datasets().values():
        table.add_row(record.name, record.spec.summary, record.label)
    say_table(table)
    echo(f"files for cse eval --suite, looked for in {folder} ({origin}) and its subfolders:")
    table = plain_table("", ("suite", "set", "file"))
    for suite, files in suites.items():
        first = suite
        for name, path in files.items():
            table.add_row(first, name, str(path.relative_to(folder)) if path else "not there")
            first = ""
    say_table(table)
    if not all(path for files in suites.values() for path in files.values()):
        echo(f"name another folder with --data-dir DIR or {DATA_VARIABLE}")
        if names := ", ".join(fetchable(plugins)):
            echo(f"`cse data fetch NAME` brings public ones: {names}")


def _suite_files(folder: Path, plugins: Installed) -> dict[str, Mapping[str, Path | None]]:
    """Locate the files of each suite, None for those that are missing."""
    paths: dict[str, Mapping[str, Path | None]] = {}
    broken: list[CseError] = []
    for suite in plugins.suites:
        with collect_errors(broken):
            located = plugins.locate(suite, folder)
            paths[suite] = located.files
            broken += located.broken
    # Several suites may have looked at one broken file.
    for line in dict.fromkeys(error.line() for error in broken):
        echo_err(f"left out: {line}")
    return paths


@app.command("stats")
def stats(
    context: typer.Context,
    paths: PathsArgument,
    unit: UnitOption = "sentence",
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            metavar="MODEL",
            help="Also count tokens with this model's tokenizer.",
            autocompletion=complete_model,
        ),
    ] = None,
    sets: ColumnsOption = None,
    json: JsonOption = False,
) -> None:
    """Show how much text there is, how long its rows are, and what was dropped."""
    from cse_cli.texts.corpus_facts import describe, token_counts

    plugins = installed(context)
    data, pairs = _load(paths, unit, plugins, sets)
    corpus = data.corpus()
    facts = describe(corpus, data.corpus(pairs))
    tokens = token_counts(corpus, model, plugins.registry) if model is not None else None
    if json:
        say_json({**facts, "unit": unit, **({"tokens": tokens} if tokens else {})})
        return
    rows: list[tuple[str, str]] = [(f"{unit}s", f"{facts['rows']:,}")]
    if facts["documents"] is not None:
        size = facts["document_rows_mean"] or 0
        rows.append(("documents", f"{facts['documents']:,}, {size:.1f} {unit}s each"))
    rows += [
        ("columns", ", ".join(facts["columns"])),
        ("blank, dropped", f"{facts['blank_dropped']:,}"),
        ("incomplete, dropped", f"{facts['incomplete_dropped']:,}"),
        ("repeated texts", f"{facts['duplicates']:,}"),
    ]
    for what in ("words", "characters"):
        mean, median, high = (facts[f"{what}_{name}"] for name in ("mean", "median", "p95"))
        said = (
            f"{mean:.1f} mean, {median:g} median, {high:g} at the 95th percentile" if mean else ""
        )
        rows.append((f"{what} a row", said or "written without spaces"))
    for name, count in facts["same_negatives"].items():
        rows.append((f"negatives that are their {name}", f"{count:,}"))
    for name, lengths in facts["others"].items():
        mean = lengths["words_mean"]
        words = "" if mean is None else f"{mean:.1f} words, "
        rows.append((f"{name}, mean", f"{words}{lengths['characters_mean']:.1f} characters"))
    if tokens:
        rows.append(
            (
                f"tokens a row ({model})",
                f"{tokens['mean']:.1f} mean, {tokens['median']:g} median, {tokens['p95']:g} at the "
                f"95th percentile, {tokens['longest']} longest, special tokens counted",
            )
        )
        shares = ", ".join(f"{name}: {share:.3f} %" for name, share in tokens["shares"].items())
        rows.append(("rows of so many tokens", shares))
    rows.append(("fingerprint", facts["fingerprint"]))
    table = plain_table("", ("what", "value"))
    for row in rows:
        table.add_row(*row)
    say_table(table)
    for message in facts["messages"]:
        echo_err(message)


@app.command("show")
def show(
    context: typer.Context,
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH",
            help="A file, an installed data set, or owner/name of the hub.",
            autocompletion=complete_data,
        ),
    ],
    rows: Annotated[int, typer.Option(metavar="N", help="Number of rows to show.")] = 5,
    unit: UnitOption = "sentence",
    sets: ColumnsOption = None,
    json: JsonOption = False,
) -> None:
    """Show the first rows as training would read them."""
    from cse_core.options import LARGEST

    if not 1 <= rows <= LARGEST:
        hint = f"write 1 to {LARGEST:,}"
        raise CseError("must be a number of rows", where="--rows", value=rows, hint=hint)
    plugins, limit = installed(context), 2 * rows + 100  # some may be blank
    data, pairs = _load([path], unit, plugins, sets, limit=limit)
    corpus = data.corpus(pairs)
    if len(corpus) < rows:
        data, pairs = _load([path], unit, plugins, sets)
        corpus = data.corpus(pairs)
    lines: list[dict[str, str]] = corpus.table.slice(0, rows).to_pylist()
    if json:
        say_json({"columns": list(corpus.names), "rows": lines})
        return
    for number, row in enumerate(lines, 1):
        echo(f"row {number}")
        for name, text in row.items():
            if text:
                echo(f"  {name}: {text}")
    for message in corpus.report.lines:
        echo_err(message)


app.command("fetch")(fetch)
app.command("show-pairs")(show_pairs)


def _load(
    paths: list[str],
    unit: str,
    plugins: Installed,
    sets: list[str] | None,
    limit: int | None = None,
) -> tuple[Data, NeededColumns]:
    """Read the data, and find its columns of positives and negatives."""
    from cse_core.texts import DataOptions, NeededColumns

    if unit not in UNITS:
        hint = did_you_mean(unit, UNITS)
        raise CseError("unknown unit", where="--unit", value=unit, hint=hint)
    given = {"path": tuple(paths), "unit": unit, "columns": named_columns(sets), "limit": limit}
    options = DataOptions.model_validate(given)
    data, views = plugins.read(options), plugins.registry.views.values()
    pairs = [v.column for v in views if v.role in ("positive", "negative") and v.column != "text"]
    pairs = [name for name in pairs if name in data.columns]
    return data, NeededColumns(tuple(pairs), partial=frozenset(pairs))
