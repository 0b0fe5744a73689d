"""``cse study``: run a study, or see what it would run."""

from __future__ import annotations

import sys
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer

from cse_cli.plugins.installed import Installed, installed
from cse_cli.terminal.console import echo, echo_err, plain_table, say_json, say_table
from cse_core.errors import CseError

_CHOOSE, _RUN, _SCORE, _SHOW = "What is run", "How it is run", "What is scored", "What is shown"


def study(
    context: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME|FILE", help="An installed study, or a TOML file of your own."),
    ] = None,
    list_: Annotated[
        bool,
        typer.Option("--list", help="List the installed studies.", rich_help_panel=_SHOW),
    ] = False,
    seeds: Annotated[
        str | None,
        typer.Option(
            metavar="N|A,B,C",
            help="How many seeds, or which; by default those of the study.",
            rich_help_panel=_CHOOSE,
        ),
    ] = None,
    points: Annotated[
        list[str] | None,
        typer.Option(
            metavar="AXIS=A,B",
            help="Only these points: places of an axis, or numbers such as 1,3-5; may be repeated.",
            rich_help_panel=_CHOOSE,
        ),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Steps of every run.", rich_help_panel=_CHOOSE),
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="First rows of the texts alone.", rich_help_panel=_CHOOSE
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            "-m",
            metavar="NAME|ROLE=NAME",
            help="The encoder in the place of @model, by default the starter; ROLE=NAME for "
            "@model:ROLE; may be repeated.",
            rich_help_panel=_CHOOSE,
        ),
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(
            "--data",
            "-d",
            metavar="FILE|ROLE=FILE",
            help="Texts in the places of roles such as @sentences, by default the starter's; may "
            "be repeated.",
            rich_help_panel=_CHOOSE,
        ),
    ] = None,
    dev: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Graded pairs that choose checkpoints, by default the starter's.",
            rich_help_panel=_CHOOSE,
        ),
    ] = None,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="Folder of all studies; their runs lie in DIR/runs.",
            rich_help_panel=_RUN,
        ),
    ] = Path("studies"),
    executor: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="What makes the runs: local; submitit or submitit:slurm_partition=P,timeout_min=M "
            "for a cluster; dask, or dask:tcp://HOST:PORT.",
            rich_help_panel=_RUN,
        ),
    ] = "local",
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Runs at a time on this machine; by default 1, of dask 2.",
            rich_help_panel=_RUN,
        ),
    ] = None,
    drop_checkpoints: Annotated[
        bool,
        typer.Option(
            "--drop-checkpoints",
            help="Delete the checkpoints of each run when it is scored; its model stays.",
            rich_help_panel=_RUN,
        ),
    ] = False,
    unpack: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Take finished runs from a file that --pack wrote; may be repeated.",
            rich_help_panel=_RUN,
        ),
    ] = None,
    suite: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Score on this suite of cse eval in place of the study's; may be repeated.",
            rich_help_panel=_SCORE,
        ),
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Where the suites' files are; else CSE_DATA_DIR says it.",
            rich_help_panel=_SCORE,
        ),
    ] = None,
    pairs: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Score on these graded pairs; may be repeated.",
            rich_help_panel=_SCORE,
        ),
    ] = None,
    markdown: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write tables and figures as a page of Markdown; the figures lie beside it.",
            rich_help_panel=_SHOW,
        ),
    ] = None,
    pack: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write what finished runs say, without their models, for others to add to.",
            rich_help_panel=_SHOW,
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Show what would be run, and stop.", rich_help_panel=_SHOW),
    ] = False,
    no_run: Annotated[
        bool,
        typer.Option(
            "--no-run",
            help="Show what the runs that are there say; nothing is trained.",
            rich_help_panel=_SHOW,
        ),
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object.", rich_help_panel=_SHOW)
    ] = False,
    html: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write a page with the table and the figures: one HTML file.",
            rich_help_panel=_SHOW,
        ),
    ] = None,
) -> None:
    """Run a study: points crossed with seeds, each run once and kept for every other study."""
    plugins = installed(context)
    if list_:
        _list(plugins, json)
        return
    if name is None:
        raise CseError("names no study", where="cse study", hint="see cse study --list")
    from cse_study.definition.reading import find_study
    from cse_study.execution.executors import check_executor
    from cse_study.pages.page import check_drawing, check_file, check_page
    from cse_study.planning.inputs import Inputs
    from cse_study.planning.plan import Wish
    from cse_study.planning.scoring import ScoreWish, showing
    from cse_study.session import Session

    check_executor(executor)
    inputs = Inputs.of(model or (), data or (), dev or ()).whole(plugins.registry)
    definition = showing(find_study(name, plugins), inputs)
    session = Session(
        definition,
        Wish(_seeds(seeds), tuple(points or ()), steps, rows, inputs),
        ScoreWish(tuple(suite or ()), data_dir, tuple(pairs or ())),
        plugins,
        out,
        executor,
        workers,
        drop_checkpoints,
    )
    for packed in unpack or ():
        session.unpack(packed)
    if pack is not None and not session.plan.runs:
        what = "is for runs, and this study calls commands or functions"
        raise CseError(what, where="--pack", value=str(pack), hint="share its results.csv")
    if dry_run:
        session.show_plan(json=json)
        return
    if html is not None:
        check_page(html, "--html")
    if markdown is not None:
        check_drawing("--markdown")
    for flag, file in (("--markdown", markdown), ("--pack", pack)):
        if file is not None:
            check_file(file, flag)
    try:
        failed = {} if no_run else session.run(shown=not json)
    except KeyboardInterrupt:
        words = " ".join(["cse", *map(quote, sys.argv[1:])])
        echo_err(f"stopped; runs that had begun go on where they were with: {words}")
        raise typer.Exit(130) from None
    if no_run:
        session.write()
    session.show(json=json)
    if markdown is not None:
        session.write_markdown(markdown, " ".join(["cse", *map(quote, sys.argv[1:])]))
    if pack is not None:
        session.pack(pack)
    if html is not None:
        session.write_page(html)
        echo_err(f"page: {html}")
    if failed:
        raise typer.Exit(1)


def _seeds(text: str | None) -> int | tuple[int, ...] | None:
    if text is None:
        return None
    try:
        named = (int(each) for each in text.split(",") if each.strip())
        numbers = tuple(dict.fromkeys(named))
    except ValueError:
        numbers = ()
    if (
        not numbers
        or min(numbers) < 0
        or (len(numbers) == 1 and "," not in text and not numbers[0])
    ):
        hint = "write how many, --seeds 5, or which, --seeds 1,2,3 (one alone: --seeds 7,)"
        raise CseError("names no seeds", where="--seeds", value=text, hint=hint)
    return numbers if "," in text else numbers[0]


def _list(plugins: Installed, json: bool) -> None:
    """Print the installed studies, those with mistakes in their files too."""
    from cse_study.definition.reading import find_study

    found: list[dict[str, Any]] = []
    for name, (spec, info) in plugins.studies.items():
        about: dict[str, Any] = {"name": name, "paper": spec.paper, "summary": spec.summary,
                 "distribution": info.distribution, "file": spec.path}  # fmt: skip
        try:
            definition = find_study(name, plugins)
        except CseError as error:
            found.append({**about, "runs": None, "error": str(error)})
            continue
        study = definition.study
        count = len(definition.points) * len(study.seeds) if study.kind == "train" else 0
        facts = {"runs": count, "points": len(definition.points), "seeds": len(study.seeds)}
        found.append({**about, "kind": study.kind, "source": study.source, **facts, "error": None})
    if json:
        say_json({"studies": found})
        return
    if not found:
        echo("no study is installed; cse study FILE runs one of your own")
        return
    table = plain_table("", ("study", "runs", "what it asks"))
    for each in found:
        runs = "?" if each["runs"] is None else str(each["runs"])
        table.add_row(str(each["name"]), runs, str(each["error"] or each["summary"]))
    say_table(table)
