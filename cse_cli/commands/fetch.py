"""``cse data fetch``: the files of a suite, or a data set of the hub."""

from __future__ import annotations

import json as json_
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cse_cli.machine.out_files import check_out_file, out_file
from cse_cli.plugins.installed import Installed, installed
from cse_cli.terminal.console import echo, echo_err, plain_table, say_json, say_table
from cse_core.errors import CseError

if TYPE_CHECKING:
    from cse_cli.texts.sources import SourceFile, Sources


def fetch(
    context: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="sts, transfer, docs; or owner/name:configuration@split#revision of the hub, of "
            "which only owner/name must be there.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="For a data set of the hub: a .parquet, .jsonl, .csv or .tsv file; by default "
            "name.parquet here.",
        ),
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="For sts, transfer, docs: the data folder."),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="PLACE",
            help="A folder with the downloads, or the address of a mirror, in place of the hosts.",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Fetch again what is there, and compare.")
    ] = False,
    list_: Annotated[
        bool, typer.Option("--list", help="Show sources and licences; fetch nothing.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Fetch the public sets of a suite into the data folder, or a data set of the hub to a file."""
    plugins = installed(context)
    table = _table(name, plugins)
    if table is None:
        _fetch_from_hub(name, out, plugins, json=json)
        return
    if out is not None:
        hint = "name a folder with --data-dir DIR"
        raise CseError(f"{name} is several files", where="--out", value=str(out), hint=hint)
    if list_:
        _show_sources(table, json=json)
    else:
        _fetch_suite(name, table, data_dir, source, force=force, json=json)


def fetchable(plugins: Installed) -> dict[str, str]:
    """Return the tables of sources that installed suites name, by the names to type."""
    paths = [spec.sources for spec in plugins.suites.values() if spec.sources]
    return {path.rpartition("/")[2].removesuffix(".toml"): path for path in paths}


def _table(name: str, plugins: Installed) -> Sources | None:
    """Return a table of sources; None of a name with a slash, which is of the hub."""
    from cse_cli.texts.sources import read_sources
    from cse_core.errors import did_you_mean
    from cse_core.runtime.loading import package_path

    known = fetchable(plugins)
    if name in known:
        return read_sources(package_path(known[name], where=name))
    if "/" in name:
        return None
    hint = did_you_mean(name, known)
    if not hint.startswith("did"):
        hint = f"there are {', '.join(known) or 'none'}, and owner/name of the hub"
    raise CseError("unknown set", where="NAME", value=name, hint=hint)


def _fetch_suite(
    name: str, table: Sources, data_dir: Path | None, source: str | None, *, force: bool, json: bool
) -> None:
    from cse_cli.plugins.folders import data_folder
    from cse_cli.texts.fetching import LOCK, Unreachable, Web, content_sum, fetch_file

    folder = data_folder(data_dir)[0] / table.folder
    locked = _read_lock(folder / LOCK)
    web = Web(source, echo_err)
    missing: list[tuple[SourceFile, str]] = []
    outcome: dict[str, str] = {}
    for file in table.files:
        path, known = folder / file.name, locked.get(file.name)
        if path.is_file() and known is None:
            outcome[file.name] = "yours"
            continue
        if path.is_file() and known is not None and not force:
            same = content_sum(path) == known["sha256"]
            outcome[file.name] = "there" if same else "changed"
            continue
        try:
            fetched = fetch_file(file, web, known)
        except Unreachable as error:
            missing.append((file, error.what))
            continue
        _write(path, fetched.content)
        owner = table.owners[file.owner]
        about = {"licence": owner.licence, "owner": owner.name, "fetched": str(date.today())}
        locked[file.name] = {**fetched.record, **about}
        _write(folder / LOCK, (json_.dumps(locked, indent=1) + "\n").encode())
        outcome[file.name] = "fetched"
    if json:
        say_json({"folder": str(folder), "files": locked, "missing": [f.name for f, _ in missing]})
    elif outcome:
        _show_fetched(table, folder, locked, outcome)
    if missing:
        _refuse(name, folder, missing)
    if not json:
        echo(f"in {folder}; checksums and sources: {LOCK}")


def _refuse(name: str, folder: Path, missing: list[tuple[SourceFile, str]]) -> None:
    """Say in one line what to put where."""
    first, why = missing[0]
    others = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    columns = f" ({first.name}: columns {', '.join(first.columns)})" if first.columns else ""
    names = ", ".join(file.name for file, _ in missing[:12])
    raise CseError(
        f"{first.name}{others} cannot be fetched: {why}",
        where=name,
        hint=f"put {names} into {folder}{columns}; or download the addresses of "
        f"`cse data fetch {name} --list` elsewhere, and `cse data fetch {name} --from FOLDER`",
    )


def _show_fetched(
    table: Sources, folder: Path, locked: dict[str, Any], outcome: dict[str, str]
) -> None:
    grid = plain_table("", ("file", "rows", "sha256", "pinned by", ""))
    for file in table.files:
        if file.name not in outcome:
            continue
        known = locked.get(file.name)
        if known is None:
            grid.add_row(file.name, "", "", "", outcome[file.name])
        else:
            grid.add_row(
                file.name, f"{known['rows']:,}", known["sha256"][:12], _pin(known),
                outcome[file.name],
            )  # fmt: skip
    say_table(grid)
    for owner in dict.fromkeys(file.owner for file in table.files if file.name in outcome):
        echo(f"from {table.owners[owner].name}; licence: {table.owners[owner].licence}")
    for what, meaning in _STATES.items():
        if names := ", ".join(name for name, state in outcome.items() if state == what):
            echo(f"{what}: {names}: {meaning}")
    other = [
        file.name
        for file in table.files
        if file.measured and locked.get(file.name, {}).get("sha256", file.measured) != file.measured
    ]
    if other:
        echo(f"other rows than in the copy that docs/results.md measured: {', '.join(other)}")
    if any(_pin(locked[name]) == _TRUSTED for name in outcome if name in locked):
        echo(f"{_TRUSTED}: its host keeps no revision, so what came first is trusted from then on")


_TRUSTED = "first fetch"
_STATES = {
    "yours": "not fetched by this command, left as it is",
    "changed": "not what was fetched; --force fetches it again",
}
"""What a file may be beside fetched or there, and what it means."""


def _pin(known: dict[str, Any]) -> str:
    """Return what pins a file, in at most 18 characters."""
    if known["published"]:
        return "published checksum"
    *_, last = known["revision"].split(" ")
    return f"revision {last[:9]}" if last else _TRUSTED


def _show_sources(table: Sources, *, json: bool) -> None:
    if json:
        say_json(table.model_dump())
        return
    for file in table.files:
        owner = table.owners[file.owner]
        rows = "" if file.rows is None else f", {file.rows:,} rows"
        echo(f"{file.name}{rows}")
        for place in file.places:
            more = f" and {len(place.urls) - 1} more" if len(place.urls) > 1 else ""
            pin = "its published checksum" if place.sha256 else place.revision or "its first fetch"
            echo(f"  {place.urls[0]}{more}")
            echo(f"  pinned by {pin}")
        echo(f"  {owner.name}; licence: {owner.licence}")


def _write(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        hint = "name another folder with --data-dir DIR"
        raise CseError(f"cannot be made: {error.strerror}", where=str(path.parent),
                       hint=hint) from None  # fmt: skip
    with out_file(path) as made:
        made.write_bytes(content)


def _read_lock(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        found = json_.loads(path.read_text(encoding="utf-8"))
        if all({"sha256", "rows", "revision", "published", "downloads"} <= set(each)
               for each in found.values()):  # fmt: skip
            return dict(found)
    except (OSError, ValueError, AttributeError, TypeError):
        pass
    hint = "remove it: the files are then yours, and no longer compared"
    raise CseError("is damaged", where=str(path), hint=hint)


def _fetch_from_hub(name: str, out: Path | None, plugins: Installed, *, json: bool) -> None:
    from cse_cli.texts.writing import write_rows, written_format
    from cse_core.data import load_corpus
    from cse_core.data.sources import find_source
    from cse_core.recipes.settings import DataOptions

    source = find_source(name, plugins.datasets)
    if source.spec is not None or source.file is not None:
        raise CseError(
            "not a data set of the hub",
            where="NAME",
            value=name,
            hint="write owner/name; files and installed data sets need no fetching",
        )
    assert source.hub is not None
    path = out if out is not None else Path(f"{source.hub.set_name}.parquet")
    written_format(str(path))
    check_out_file(path)
    options = DataOptions.model_validate({"path": (name,)})
    corpus = load_corpus(options, datasets=plugins.datasets)
    with out_file(path) as made, made.open("wb") as file:
        write_rows(corpus.table, file, path.name)
    if json:
        say_json({"file": str(path), "rows": len(corpus), "columns": list(corpus.names)})
    else:
        echo(f"{len(corpus):,} rows of {name} are in {path}; train with --data {path}")
