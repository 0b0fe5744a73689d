"""``cse index``: texts encoded once and kept, for ``cse search``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cse_cli.api import (
    ColumnsOption,
    Loading,
    ModelArgument,
    check_out_folder,
    check_text,
    complete_data,
    echo_err,
    installed,
    model_flags,
    named_columns,
    progress,
    read_places,
    say_json,
    shared,
    warn,
)
from cse_core.errors import CseError
from cse_search.mapping import LEAST


@shared
@model_flags
def index(
    context: typer.Context,
    model: ModelArgument,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE",
            help="Texts to index: folders of md, html and txt documents, txt files with one text "
            "per line, tables, or installed data sets. By default those of the existing index.",
            autocompletion=complete_data,
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="Folder of the index (default: index in the run's folder).",
        ),
    ] = None,
    half: Annotated[
        bool, typer.Option("--half", help="Keep vectors in float16, half the size.")
    ] = False,
    map_by: Annotated[
        int | None,
        typer.Option(
            "--map",
            metavar="N",
            min=LEAST,
            help="If the model has changed: encode N of the texts that are there, and map the old "
            "vectors of the others to the new ones (default: encode all again).",
        ),
    ] = None,
    sets: ColumnsOption = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    *,
    loading: Loading,
) -> None:
    """Encode texts into an index for search, or update it."""
    from cse import TextEncoder
    from cse_search.index import changed, index_folder, model_sum, open_index, write_index
    from cse_search.mapping import map_index

    plugins = installed(context)
    loading.check(model, plugins.registry)
    folder = index_folder(model, out)
    if folder is None:
        hint = "name the folder of the index: --out DIR"
        raise CseError("is not a run: its index needs a folder", where="MODEL", value=model,
                       hint=hint)  # fmt: skip
    old = None
    if folder.is_dir() and any(folder.iterdir()):
        old = open_index(folder)
    check_out_folder(folder)
    columns = named_columns(sets)
    if not files and old is None:
        raise CseError("no texts are named", where="FILE", hint="name a folder or files of texts")
    if not files and old is not None:
        files, columns = list(old.about["files"]), dict(old.about["columns"]) | columns
    for place, file in enumerate(files := list(files or ())):
        if file not in plugins.registry.datasets() and Path(file).exists():
            files[place] = str(Path(file).absolute())
            check_text(files[place], "FILE")
    places, notes = read_places(files, plugins.registry, columns)
    settings = {"model": model_sum(model, plugins.registry), "pooling": loading.pooling,
                "max_length": loading.max_length, "prompt": loading.prompt,
                "half": half}  # fmt: skip
    why = None if old is None else changed(old, settings)
    if map_by is not None and why is None:
        raise CseError("maps the vectors of an index whose model has changed", where="--map",
                       value=map_by, hint="leave it out")  # fmt: skip
    if why is not None and map_by is None:
        warn(f"{why} since the index in {folder} was made: all texts are encoded again")
        old = None
    loaded = loading.load(model, plugins.registry)
    encode = TextEncoder(loaded, loading.batch_tokens)
    about = {"model": model, "settings": settings, "files": files, "columns": columns}
    if old is not None and map_by is not None:
        old = map_index(old, encode, map_by)
    if old is not None and (mapped := old.about.get("mapped")):
        about["mapped"] = mapped
        notes.append(
            f"vectors of up to {mapped['texts']:,} texts are mapped, not encoded: they find "
            f"{mapped['recall']:.0%} of the 10 nearest texts in a sample; to encode all, delete "
            f"{folder}"
        )
    with progress(json=json) as reporter:
        counts = write_index(folder, encode, places, about, old, progress=reporter.progress)
    for note in (*notes, *([encode.note] if encode.note else [])):
        warn(note)
    if json:
        say_json({"index": str(folder), "texts": len(places), **counts})
        return
    said = ", ".join(f"{count:,} {name}" for name, count in counts.items())
    echo_err(f"{len(places):,} texts are in {folder}: {said}")
