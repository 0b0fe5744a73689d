"""``cse verify``: repeat rows of a published study from its pack."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import asdict
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cse_cli.api import (
    DATA_VARIABLE,
    Installed,
    data_folder,
    echo,
    echo_err,
    installed,
    plain_table,
    say_json,
    say_table,
)
from cse_core.errors import CseError
from cse_study.commands.study import seeds_of

if TYPE_CHECKING:
    from cse_study.definition.reading import Definition
    from cse_study.execution.packs import Head, Pack
    from cse_study.verifying import Verified

_choose = partial(typer.Option, rich_help_panel="What is repeated")
_from = partial(typer.Option, rich_help_panel="Where its files are")


def verify(
    context: typer.Context,
    pack: Annotated[Path, typer.Argument(metavar="PACK", help="What cse study --pack wrote.")],
    points: Annotated[
        list[str] | None,
        _choose(metavar="AXIS=A,B", help="Only these points, as cse study takes them."),
    ] = None,
    seeds: Annotated[
        str | None, _choose(metavar="N|A,B,C", help="Only the first N seeds, or which.")
    ] = None,
    rows: Annotated[
        int | None, _choose(min=1, metavar="N", help="Only the first N rows of those.")
    ] = None,
    files: Annotated[
        list[Path] | None,
        _from(
            metavar="DIR",
            help="Search this folder, or file, for models and texts by their content; may be "
            "repeated.",
        ),
    ] = None,
    data_dir: Annotated[
        Path | None,
        _from(metavar="DIR", help=f"Folder of the suites' files; by default {DATA_VARIABLE}."),
    ] = None,
    study: Annotated[
        str | None, _from(metavar="FILE", help="The study, where no installed plugin has it.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="Write the pack with what came of each row."
        ),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, metavar="N", help="Runs at a time.")] = 1,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the rows and what each took, and stop.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Repeat rows of a study from its pack: equal bit for bit, near, or other."""
    plugins = installed(context)
    from cse_study.definition.reading import find_study
    from cse_study.execution.packs import read_pack, write_pack
    from cse_study.pages.page import check_file
    from cse_study.provenance import WHERE, check_there, locate
    from cse_study.verifying import Choice, Repeat, differing, listed, marked

    packed = read_pack(pack, WHERE)
    head = packed.named(WHERE)
    if out is not None and not dry_run:
        check_file(out, "--out")
    definition = find_study(study or _installed(packed, head, plugins.studies), plugins)
    wanted = None if seeds is None else seeds_of(seeds)
    wanted = head.seeds[:wanted] if isinstance(wanted, int) else wanted
    choice = Choice(points or (), wanted, rows)
    folder, origin = data_folder(data_dir)
    places = [folder] if folder.is_dir() or origin == "--data-dir" else []
    there = locate(head, [*(files or ()), *places])
    planned = listed(packed, definition, choice)
    differs = [*_changed(definition, head, plugins),
               *differing(packed, [row.key for row in planned])]  # fmt: skip
    if dry_run:
        _say_planned(packed, planned, differs, head, there, json=json)
        return
    check_there(head, there)
    _begin(packed, planned, differs)
    with Repeat(packed, definition, plugins, planned, there, workers) as repeat:
        made = repeat.carry_out(
            lambda row, done: echo_err(f"{row.point.name}, seed {row.seed}: {done.status}")
        )
    if out is not None:
        write_pack(out, head, marked(packed, made))
        echo_err(f"the pack with what came of each row: {out}")
    _say(definition, packed, made, differs, json=json)
    if repeat.stopped:
        echo_err("stopped: the other rows were not repeated")
        raise typer.Exit(130)
    if any(row.verdict in ("other", "failed") for row in made):
        raise typer.Exit(1)


def _installed(packed: Pack, head: Head, known: Collection[str]) -> str:
    """Return the name of a pack's study; refuse one that no installed plugin has."""
    from cse_study.provenance import WHERE

    if head.study not in known:
        what = f"its study {head.study} is not installed"
        hint = "install the plugin that brings it, or name its file: --study FILE"
        raise CseError(what, where=WHERE, value=str(packed.file), hint=hint)
    return head.study


def _changed(definition: Definition, head: Head, plugins: Installed) -> list[str]:
    """Say what of a study and of models that are known by name is another than in a pack."""
    from cse_study.planning.composing import model_digest
    from cse_study.provenance import definition_digest

    lines = []
    if definition_digest(definition) != head.definition:
        lines.append(f"study: {definition.name} has changed what its runs are made of")
    for source in head.models.values():
        if source.digest and model_digest(source.name, plugins) != source.digest:
            lines.append(f"model: {source.name} is another one here")
    return lines


def _begin(packed: Pack, rows: Sequence[Verified], differs: Sequence[str]) -> None:
    took = timedelta(seconds=round(sum(row.seconds for row in rows)))
    echo_err(f"rows of {packed.file} to repeat: {len(rows)}, which took {took} there")
    for line in differs:
        echo_err(f"note: {line}")


def _say_planned(
    packed: Pack,
    rows: Sequence[Verified],
    differs: Sequence[str],
    head: Head,
    there: dict[str, Path],
    *,
    json: bool,
) -> None:
    """Print the rows with what each took, the files that they need, and what differs here."""
    if json:
        listed = [{**file.model_dump(), "there": file.sha256 in there} for file in head.files]
        say_json({"pack": str(packed.file), "differs": differs, "files": listed,
                  "rows": [_brief(row) for row in rows]})  # fmt: skip
        return
    table = plain_table("", ("point", "seed", "took"))
    for row in rows:
        table.add_row(row.point, str(row.seed), str(timedelta(seconds=round(row.seconds))))
    say_table(table)
    total = timedelta(seconds=round(sum(row.seconds for row in rows)))
    echo(f"rows: {len(rows)}, which took {total} in all, trials not counted")
    for file in head.files:
        echo(f"{'there' if file.sha256 in there else 'not there'}: {file}")
    for source in dict.fromkeys(source.name for source in head.sources if not source.files):
        echo(f"by its name: {source}")
    for line in differs:
        echo(f"note: {line}")


def _brief(row: Verified) -> dict[str, Any]:
    return {"point": row.point, "seed": row.seed, "key": row.key, "seconds": row.seconds}


def _say(
    definition: Definition,
    packed: Pack,
    made: Sequence[Verified],
    differs: Sequence[str],
    *,
    json: bool,
) -> None:
    if json:
        say_json({"study": definition.name, "pack": str(packed.file), "differs": differs,
                  "rows": list(map(asdict, made))})  # fmt: skip
        return
    table = plain_table("", ("point", "seed", "verdict", "largest difference", "what differs"))
    for row in made:
        apart = f"{row.largest:.4f} ({row.score})" if row.largest else ""
        table.add_row(row.point, str(row.seed), row.verdict, apart, row.parted)
    say_table(table)
    counts = Counter(row.verdict for row in made)
    echo(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
