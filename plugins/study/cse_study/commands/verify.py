"""``cse verify``: repeat rows of a published study from its pack."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
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
_old = partial(typer.Option, rich_help_panel="Of packs that do not name their study")


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
        str | None,
        _old(metavar="NAME|FILE", help="The study, where it is not an installed one, too."),
    ] = None,
    model: Annotated[
        list[str] | None, _old("--model", "-m", metavar="NAME|ROLE=NAME", help="The encoder.")
    ] = None,
    data: Annotated[
        list[str] | None, _old("--data", "-d", metavar="FILE|ROLE=FILE", help="Texts for roles.")
    ] = None,
    dev: Annotated[
        list[str] | None, _old(metavar="FILE", help="Graded pairs that chose checkpoints.")
    ] = None,
    suite: Annotated[
        list[str] | None, _old(metavar="NAME", help="The suite that runs were scored on.")
    ] = None,
    pairs: Annotated[
        list[str] | None, _old(metavar="FILE", help="The pairs that runs were scored on.")
    ] = None,
    steps: Annotated[int | None, _old(min=1, metavar="N", help="Steps of every run.")] = None,
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
    from cse_study.planning.composing import Inputs, Wish
    from cse_study.planning.scoring import showing
    from cse_study.provenance import check_there, locate
    from cse_study.verifying import Choice, Repeat, differing, listed, marked

    packed = read_pack(pack, "cse verify")
    head = packed.head
    if out is not None and not dry_run:
        check_file(out, "--out")
    definition = find_study(_name(packed, study, plugins.studies), plugins)
    wanted = None if seeds is None else seeds_of(seeds)
    if isinstance(wanted, int):
        wanted = (head.seeds if head else Wish(wanted).seeds_of(definition.study.seeds))[:wanted]
    choice = Choice(points or (), wanted, rows)
    given = Inputs.of(model or (), data or (), dev or ())
    inputs = given.whole(plugins)
    wish = Wish(None, (), steps, None, inputs, suite or (), pairs or (), data_dir)
    there: dict[str, Path] = {}
    if head is not None:
        named = [name for names in given.data.values() for name in names]
        named += [*given.models.values(), *given.dev, *wish.pairs]
        other = [f"--steps {steps}"] if steps is not None else []
        other += [*(suite or ()), *(name for name in named if not os.path.exists(name))]
        if other:
            what, hint = "the pack says everything but where its files lie", "leave it out"
            raise CseError(what, where="cse verify", value=other[0], hint=hint)
        folder, origin = data_folder(data_dir)
        places = [*(files or ()), *map(Path, named)]
        places += [folder] if folder.is_dir() or origin == "--data-dir" else []
        there = locate(head, places)
    elif files:
        what = "belongs to packs that list their files, and this one does not"
        raise CseError(what, where="--files", value=str(files[0]), hint=_NAMED)
    planned: list[Verified] = []
    differs: list[str] = []
    if head is not None:
        planned = listed(packed, definition, choice)
        differs = [*_changed(definition, head, plugins),
                   *differing(packed, [row.key for row in planned])]  # fmt: skip
        if dry_run:
            _say_planned(packed, planned, differs, head, there, json=json)
            return
        check_there(head, there)
        _begin(packed, planned, differs)
    definition = showing(definition, inputs)
    with Repeat(packed, definition, plugins, choice, wish, there, workers) as repeat:
        if head is None:
            planned, differs = repeat.planned, differing(packed, repeat.rows)
            if dry_run:
                _say_planned(packed, planned, differs, None, {}, json=json)
                return
            _begin(packed, planned, differs)
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


_NAMED = "name its model, texts and dev sets as in cse study: --model, --data, --dev, --data-dir"


def _name(packed: Pack, study: str | None, known: object) -> str:
    """Return the name of a pack's study.

    Raises:
        CseError: The pack does not say it, or no plugin that is installed has it.
    """
    where, value = "cse verify", str(packed.file)
    if study is not None:
        return study
    if packed.head is None:
        what = "was written before packs named their study"
        raise CseError(what, where=where, value=value, hint=f"add --study NAME, and {_NAMED[5:]}")
    name = packed.head.study
    if name not in known:  # type: ignore[operator]
        what = f"its study {name} is not installed"
        hint = "install the plugin that brings it, or name its file: --study FILE"
        raise CseError(what, where=where, value=value, hint=hint)
    return name


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
    head: Head | None,
    there: dict[str, Path],
    *,
    json: bool,
) -> None:
    """Print the rows with what each took, the files that they need, and what differs here."""
    files = [] if head is None else head.files
    names = [source for source in head.sources if not source.files] if head else []
    if json:
        listed = [{**file.model_dump(), "there": file.sha256 in there} for file in files]
        say_json({"pack": str(packed.file), "differs": differs, "files": listed,
                  "rows": [_brief(row) for row in rows]})  # fmt: skip
        return
    table = plain_table("", ("point", "seed", "took"))
    for row in rows:
        table.add_row(row.point, str(row.seed), str(timedelta(seconds=round(row.seconds))))
    say_table(table)
    total = timedelta(seconds=round(sum(row.seconds for row in rows)))
    echo(f"rows: {len(rows)}, which took {total} in all, trials not counted")
    for file in files:
        echo(f"{'there' if file.sha256 in there else 'not there'}: {file}")
    for source in dict.fromkeys(source.name for source in names):
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
