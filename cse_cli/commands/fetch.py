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
from cse_core.errors import CseError, did_you_mean
from cse_core.records import RecipeSpec

if TYPE_CHECKING:
    from cse_cli.texts.fetching import Sources


def fetch(
    context: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="sts, transfer, collections, docs, reviews, simclue, simcse; or "
            "owner/name:configuration@split#revision of the hub, of which only owner/name must be "
            "there.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="For a data set of the hub: a .parquet or .jsonl file; by default name.parquet "
            "here.",
        ),
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="For sets that are not of the hub: the data folder."),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="PLACE",
            help="A folder with downloaded files, or a mirror's address, instead of the hosts.",
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="SET", help="Of several sets only this one, such as nfcorpus."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Download existing files again and compare.")
    ] = False,
    list_: Annotated[
        bool, typer.Option("--list", help="Show sources and licences without downloading.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Fetch public sets into the data folder, or a data set of the hub to a file."""
    plugins = installed(context)
    table = _table(name, plugins)
    if table is None:
        flags = {"--only": only, "--from": source, "--data-dir": data_dir, "--list": list_}
        for flag in (flag for flag, given in flags.items() if given):
            hint = "leave it out: a data set of the hub is one file"
            raise CseError("is for sets of several files", where=flag, hint=hint)
        _fetch_from_hub(name, out, plugins, force=force, json=json)
        return
    if out is not None:
        hint = "name a folder with --data-dir DIR"
        raise CseError(f"{name} is several files", where="--out", value=str(out), hint=hint)
    table = _chosen(table, only or [])
    if list_:
        _show_sources(table, json=json)
    else:
        _fetch_suite(name, table, data_dir, source, force=force, json=json)


def fetchable(plugins: Installed) -> dict[str, str]:
    """Return the tables of sources that installed suites and recipes name, by what to type."""
    paths = [spec.sources for spec in plugins.suites.values()]
    paths += [recipe.spec.sources for recipe in plugins.registry.all(RecipeSpec)]
    return {path.rpartition("/")[2].removesuffix(".toml"): path for path in paths if path}


def _table(name: str, plugins: Installed) -> Sources | None:
    """Return a table of sources; None of a name with a slash, which is of the hub."""
    from cse_cli.texts.fetching import read_sources
    from cse_core.loading import package_path

    known = fetchable(plugins)
    if name in known:
        return read_sources(package_path(known[name], where=name))
    if "/" in name:
        return None
    hint = did_you_mean(name, known)
    if not hint.startswith("did"):
        hint = f"there are {', '.join(known) or 'none'}, and owner/name of the hub"
    raise CseError("unknown set", where="NAME", value=name, hint=hint)


def _chosen(table: Sources, only: list[str]) -> Sources:
    """Return a table with the files of some sets, of all where none is named."""
    known = dict.fromkeys(file.set_name for file in table.files)
    for name in only:
        if name not in known:
            raise CseError(
                "unknown set", where="--only", value=name, hint=did_you_mean(name, known)
            )
    files = tuple(file for file in table.files if not only or file.set_name in only)
    return table.model_copy(update={"files": files})


def _fetch_suite(
    name: str, table: Sources, data_dir: Path | None, source: str | None, *, force: bool, json: bool
) -> None:
    from cse_cli.plugins.folders import data_folder
    from cse_cli.texts.fetching import LOCK, Unreachable, Web, content_sum, fetch_file

    folder = data_folder(data_dir)[0] / table.folder
    lock = _read_lock(folder / LOCK)
    web = Web(source, echo_err)
    missing: dict[str, str] = {}
    states: dict[str, str] = {}
    for file in table.files:
        path, known = folder / file.name, lock.get(file.name)
        if known is not None and not known["rows"]:  # nothing that could be trusted
            path.unlink(missing_ok=True)
            del lock[file.name]
            known = None
        if path.is_file() and known is None:
            states[file.name] = "yours: not fetched by this command, left as it is"
            continue
        if path.is_file() and known is not None and not force:
            same = content_sum(path) == known["sha256"]
            changed = "changed: not what was fetched; --force fetches it again"
            states[file.name] = "there" if same else changed
            continue
        try:
            content, record = fetch_file(file, web, known)
        except Unreachable as error:
            missing[file.name] = error.what
            continue
        _write(path, content)
        owner = table.owners[file.owner]
        about = {"licence": owner.licence, "owner": owner.name, "fetched": str(date.today())}
        lock[file.name] = {**record, **about}
        _write(folder / LOCK, (json_.dumps(lock, indent=1) + "\n").encode())
        other = file.measured not in ("", record["sha256"])
        states[file.name] = f"fetched{', not the copy that the documentation measured' * other}"
    if json:
        say_json({"folder": str(folder), "files": lock, "missing": list(missing)})
    elif states:
        _show_fetched(table, lock, states)
    if missing:
        _refuse(name, table, folder, missing)
    if not json:
        echo(f"in {folder}; checksums and sources: {LOCK}")


def _refuse(name: str, table: Sources, folder: Path, missing: dict[str, str]) -> None:
    """Say in one line what to put where."""
    first = next(file for file in table.files if file.name in missing)
    others = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    columns = f" ({first.name}: columns {', '.join(first.columns)})" if first.columns else ""
    raise CseError(
        f"{first.name}{others} cannot be fetched: {missing[first.name]}",
        where=name,
        hint=f"put {', '.join(list(missing)[:9])} into {folder}{columns}; or download the "
        f"addresses of `cse data fetch {name} --list` elsewhere, and "
        f"`cse data fetch {name} --from FOLDER`",
    )


def _show_fetched(table: Sources, lock: dict[str, Any], states: dict[str, str]) -> None:
    grid = plain_table("", ("file", "rows", "sha256", "pinned by", ""))
    for name, state in states.items():
        known = lock.get(name)
        facts = (f"{known['rows']:,}", known["sha256"][:12], known["pin"]) if known else ("",) * 3
        grid.add_row(name, *facts, state)
    say_table(grid)
    for owner in dict.fromkeys(file.owner for file in table.files if file.name in states):
        echo(f"from {table.owners[owner].name}; licence: {table.owners[owner].licence}")


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
            echo(f"  {place.urls[0]}{more}\n  pinned by {place.pin}")
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
        known = json_.loads(path.read_text(encoding="utf-8"))
        if all({"sha256", "rows", "pin", "downloads"} <= set(file)
               for file in known.values()):  # fmt: skip
            return dict(known)
    except (OSError, ValueError, AttributeError, TypeError):
        pass
    hint = "remove it: the files are then yours, and no longer compared"
    raise CseError("is damaged", where=str(path), hint=hint)


def _fetch_from_hub(
    name: str, out: Path | None, plugins: Installed, *, force: bool, json: bool
) -> None:
    from cse_core.texts import DataOptions
    from cse_defaults.texts import load_corpus
    from cse_defaults.texts.hub import hub_name

    if (on_hub := hub_name(name)) is None:
        raise CseError(
            "not a data set of the hub",
            where="NAME",
            value=name,
            hint="write owner/name; files and installed data sets need no fetching",
        )
    path = out if out is not None else Path(f"{on_hub.set_name}.parquet")
    if path.suffix not in (".parquet", ".jsonl"):
        hint = "name it *.parquet or *.jsonl"
        raise CseError("unknown file type for rows", where="--out", value=str(path), hint=hint)
    if out is None and path.exists() and not force:
        hint = "name another, or replace it with --force"
        raise CseError("is there already", where="--out", value=str(path), hint=hint)
    check_out_file(path)
    options = DataOptions.model_validate({"path": (name,)})
    corpus = load_corpus(options, plugins.registry)
    with out_file(path) as made:
        if path.suffix == ".parquet":
            import pyarrow.parquet

            pyarrow.parquet.write_table(corpus.table, made)
        else:
            with made.open("w", encoding="utf-8") as lines:
                for batch in corpus.table.to_batches(10_000):
                    for row in batch.to_pylist():
                        lines.write(json_.dumps(row, ensure_ascii=False) + "\n")
    if json:
        say_json({"file": str(path), "rows": len(corpus), "columns": list(corpus.names)})
    else:
        echo(f"{len(corpus):,} rows of {name} are in {path}; train with --data {path}")
