"""``cse study``: run a study, or see what it would run."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Annotated, Any, Literal

import typer

from cse_cli.api import Installed, echo, echo_err, installed, plain_table, say_json, say_table
from cse_core.errors import CseError

_choose = partial(typer.Option, rich_help_panel="What is run")
_run = partial(typer.Option, rich_help_panel="How it is run")
_score = partial(typer.Option, rich_help_panel="What is scored")
_show = partial(typer.Option, rich_help_panel="What is shown")


def study(
    context: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME|FILE", help="An installed study, or a TOML file of your own."),
    ] = None,
    list_: Annotated[bool, _show("--list", help="List the installed studies.")] = False,
    seeds: Annotated[
        str | None,
        _choose(metavar="N|A,B,C", help="How many seeds, or which; by default those of the study."),
    ] = None,
    points: Annotated[
        list[str] | None,
        _choose(
            metavar="AXIS=A,B",
            help="Only these points: places of an axis, or numbers such as 1,3-5; may be repeated.",
        ),
    ] = None,
    steps: Annotated[int | None, _choose(min=1, metavar="N", help="Steps of every run.")] = None,
    rows: Annotated[
        int | None, _choose(min=1, metavar="N", help="Use only the first N rows of the texts.")
    ] = None,
    model: Annotated[
        list[str] | None,
        _choose(
            "--model",
            "-m",
            metavar="NAME|ROLE=NAME",
            help="The encoder for @model (default: the starter), or ROLE=NAME for @model:ROLE.",
        ),
    ] = None,
    data: Annotated[
        list[str] | None,
        _choose(
            "--data",
            "-d",
            metavar="FILE|ROLE=FILE",
            help="Texts for roles such as @sentences, by default the starter's; may be repeated.",
        ),
    ] = None,
    dev: Annotated[
        list[str] | None,
        _choose(
            metavar="FILE", help="Graded pairs that choose checkpoints, by default the starter's."
        ),
    ] = None,
    out: Annotated[
        Path,
        _run(
            "--out", "-o", metavar="DIR", help="Folder of all studies; their runs are in DIR/runs."
        ),
    ] = Path("studies"),
    workers: Annotated[
        int, _run(min=1, metavar="N", help="Runs at a time; they share the cores.")
    ] = 1,
    unpack: Annotated[
        list[Path] | None,
        _run(
            metavar="FILE",
            help="Take finished runs from a file that --pack wrote; may be repeated.",
        ),
    ] = None,
    add: Annotated[
        list[Path] | None,
        _run(
            metavar="FILE",
            help="Show rows of others, whose points the study lacks, from a file that --pack "
            "wrote; may be repeated.",
        ),
    ] = None,
    suite: Annotated[
        list[str] | None,
        _score(
            metavar="NAME",
            help="Score on this suite of cse eval in place of the study's; may be repeated.",
        ),
    ] = None,
    data_dir: Annotated[
        Path | None,
        _score(metavar="DIR", help="Folder of the suites' files; by default CSE_DATA_DIR."),
    ] = None,
    pairs: Annotated[
        list[str] | None,
        _score(metavar="FILE", help="Score on these graded pairs; may be repeated."),
    ] = None,
    page: Annotated[
        Path | None,
        _show(
            metavar="FILE", help="Write tables and figures to FILE.md, with SVG files beside it."
        ),
    ] = None,
    latex: Annotated[
        Path | None,
        _show(
            metavar="FILE",
            help="Write the table to FILE.tex (booktabs) and FILE.csv, figures as PDF beside them.",
        ),
    ] = None,
    spread: Annotated[
        Literal["deviation", "interval"],
        _show(help="What --latex prints behind a mean: the deviation over seeds, or its interval."),
    ] = "deviation",
    pack: Annotated[
        Path | None,
        _show(
            metavar="FILE",
            help="Write what finished runs say, without their models, for others to add to.",
        ),
    ] = None,
    dry_run: Annotated[bool, _show("--dry-run", help="Show what would be run, and stop.")] = False,
    no_run: Annotated[
        bool, _show("--no-run", help="Show the results of existing runs without training.")
    ] = False,
    json: Annotated[bool, _show("--json", help="Print one JSON object.")] = False,
) -> None:
    """Run a study: points crossed with seeds, each run once and kept for every other study."""
    plugins = installed(context)
    if list_:
        _list(plugins, json)
        return
    if name is None:
        raise CseError("names no study", where="cse study", hint="see cse study --list")
    from cse_core.files import writable_folder
    from cse_study.adding import add_rows
    from cse_study.definition.reading import find_study
    from cse_study.execution import packs
    from cse_study.pages.page import check_file, check_page
    from cse_study.planning.composing import Inputs, Wish
    from cse_study.planning.scoring import showing
    from cse_study.provenance import head_of
    from cse_study.session import Session

    inputs = Inputs.of(model or (), data or (), dev or ()).whole(plugins)
    definition = showing(find_study(name, plugins), inputs)
    wanted = None if seeds is None else seeds_of(seeds)
    wish = Wish(wanted, points or (), steps, rows, inputs, suite or (), pairs or (), data_dir)
    session = Session(definition, wish, plugins, out, workers)
    for flag, packs_ in (("--unpack", unpack), ("--add", add)):
        if dry_run and packs_:
            hint = f"leave --dry-run out: with {flag} --no-run trains nothing"
            raise CseError("writes runs of the pack", where=flag, value=str(packs_[0]), hint=hint)
    if spread != "deviation" and latex is None:
        hint = "name its file with --latex FILE"
        raise CseError("is of the table of --latex", where="--spread", value=spread, hint=hint)
    if page is not None:
        check_page(page, "--page")
    if latex is not None:
        check_page(latex, "--latex", ".tex")
    if pack is not None:
        check_file(pack, "--pack")
    for packed in unpack or ():
        writable_folder(session.folder.runs, "--out")
        taken, total = packs.unpack(session.folder, packed)
        echo_err(f"{taken} of {total} runs of {packed} are new here")
    for flag, file in [("--pack", pack), *(("--add", file) for file in add or ())]:
        if file is not None and definition.study.kind != "train":
            what = "is for runs, and this study calls commands or functions"
            raise CseError(what, where=flag, value=str(file), hint="share its results.csv")
    for packed in add or ():
        add_rows(session, packs.read_pack(packed, "--add"))
    if dry_run:
        session.show_plan(json=json)
        return
    command = " ".join(["cse", *map(quote, sys.argv[1:])])
    try:
        failed = {} if no_run else session.run(shown=not json)
    except KeyboardInterrupt:
        echo_err(f"stopped; to resume, run: {command}")
        raise typer.Exit(130) from None
    if no_run:
        session.write()
    session.show(json=json)
    if pack is not None:
        runs = session.plan.runs
        count = packs.pack(session.folder, runs, pack, head_of(session))
        echo_err(f"{count} of {len(runs)} runs are in {pack}, without their models")
    if page is not None or latex is not None:
        from cse_study.pages.latex import write_latex
        from cse_study.pages.study_page import study_page

        results = session.results
        made = study_page(results, command)
        if page is not None:
            made.write(page)
            echo_err(f"page: {page}")
        if latex is not None:
            write_latex(results, made.pictures, latex, command, spread)
            echo_err(f"latex: {latex}")
    if failed:
        raise typer.Exit(1)


def seeds_of(text: str) -> int | tuple[int, ...]:
    """Read how many seeds a text asks for, or which."""
    from cse_study.definition.schema import MAX_SEED

    try:
        named = (int(part) for part in text.split(",") if part.strip())
        numbers = tuple(dict.fromkeys(named))
    except ValueError:
        numbers = ()
    if (
        not numbers
        or not 0 <= min(numbers) <= max(numbers) <= MAX_SEED
        or (len(numbers) == 1 and "," not in text and not numbers[0])
    ):
        hint = "write how many, --seeds 5, or which, --seeds 1,2,3 (one alone: --seeds 7,)"
        raise CseError("names no seeds", where="--seeds", value=text, hint=hint)
    return numbers if "," in text else numbers[0]


def _list(plugins: Installed, json: bool) -> None:
    """Print the installed studies, those with mistakes in their files too."""
    from cse_study.definition.reading import find_study

    rows: list[dict[str, Any]] = []
    for name, (spec, info) in plugins.studies.items():
        about: dict[str, Any] = {"name": name, "paper": spec.paper, "summary": spec.summary,
                 "distribution": info.distribution, "file": spec.path}  # fmt: skip
        try:
            definition = find_study(name, plugins)
        except CseError as error:
            rows.append({**about, "runs": None, "error": str(error)})
            continue
        study = definition.study
        count = len(definition.points) * len(study.seeds) if study.kind == "train" else 0
        facts = {"runs": count, "points": len(definition.points), "seeds": len(study.seeds),
                 "numbers": sum(len(table.cells) for table in definition.printed),
                 "missing": study.paper.missing}  # fmt: skip
        rows.append({**about, "kind": study.kind, "source": study.source, **facts, "error": None})
    if json:
        say_json({"studies": rows})
        return
    if not rows:
        echo("no study is installed; cse study FILE runs one of your own")
        return
    table = plain_table("", ("study", "runs", "of the paper", "what it asks"))
    for row in rows:
        runs = "?" if row["runs"] is None else str(row["runs"])
        said = [f"numbers: {row['numbers']}"] if row.get("numbers") else []
        said += [f"missing: {row['missing']}"] if row.get("missing") else []
        what = str(row["error"] or row["summary"])
        table.add_row(str(row["name"]), runs, "; ".join(said), what)
    say_table(table)
