"""``cse index``: texts encoded once and kept, for ``cse search``."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from cse_cli.api import (
    ColumnsOption,
    Installed,
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
    say_json,
    shared,
    warn,
)
from cse_core.errors import CseError, did_you_mean
from cse_search.vectors import Kind


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
    replace: Annotated[
        bool,
        typer.Option(
            "--replace",
            help="Make the index of these files alone (default: add them to those that it has).",
        ),
    ] = False,
    titles: Annotated[
        bool | None,
        typer.Option(
            "--titles/--no-titles",
            help="Put the title and headings of a passage before it, for vectors and words "
            "(default: as the index was made, first --titles).",
            show_default=False,
        ),
    ] = None,
    vectors: Annotated[
        Kind | None,
        typer.Option(
            "--vectors",
            help="How vectors are kept: float16 takes half of float32's room, int8 a quarter "
            "(default: as the index was made, first float32).",
            show_default=False,
        ),
    ] = None,
    language: Annotated[
        list[str] | None,
        typer.Option(
            "--language",
            metavar="NAME",
            help="Language of the texts, by whose stems --bm25 compares; may be repeated; none: "
            "words as they are (default: found by their frequent words).",
            show_default=False,
        ),
    ] = None,
    sets: ColumnsOption = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    *,
    loading: Loading,
) -> None:
    """Encode texts into an index for search, or update it.

    Files that are named are added to those that the index has; without any, it is updated. Texts
    that it has are not encoded again.
    """
    from cse import TextEncoder, stem_languages
    from cse_search.index import OF_MODEL, changed, index_folder, model_sum, updating, write_index
    from cse_search.reading import read_passages

    plugins = installed(context)
    loading.check(model, plugins.registry)
    folder = index_folder(model, out)
    if folder is None:
        hint = "name the folder of the index: --out DIR"
        raise CseError("is not a run: its index needs a folder", where="MODEL", value=model,
                       hint=hint)  # fmt: skip
    known = ["none", *stem_languages()]
    for name in {*(language or ())}.difference(known):
        hint = did_you_mean(name, known)
        raise CseError("has no stemmer", where="--language", value=name, hint=hint)
    if replace and not files:
        raise CseError("no files are named", where="--replace", hint="name a folder or files")
    check_out_folder(folder)
    with updating(folder, "--out") as old:
        about = {} if old is None else old.about
        named, columns = _absolute(files or (), plugins), named_columns(sets)
        before = list(about.get("files", ()))
        if not named and not before:
            hint = "name a folder or files of texts"
            raise CseError("no texts are named", where="FILE", hint=hint)
        if replace:
            lost = [name for name in before if name not in named]
            if lost:
                warn(f"{folder} no longer has {_listed(lost)}")
        else:
            gone = [name for name in before if os.path.isabs(name) and not os.path.exists(name)]
            kept = [name for name in before if name not in gone]
            if gone and (kept or named):
                warn(f"{_listed(gone)}: no longer there, so {folder} drops their texts")
            if set(named).difference(kept) and kept:
                echo_err(f"{folder} keeps {_listed(kept)}; --replace leaves them out")
            named = list(dict.fromkeys((*kept, *named)))
            columns = dict(about.get("columns", {})) | columns
        if not named:
            raise CseError("none of its files is there any more", where=str(folder))
        passages = read_passages(named, plugins.registry, columns)
        was = {} if replace else about.get("settings", {})
        given = {name: getattr(loading, name) for name in OF_MODEL}
        given |= {"titles": titles, "vectors": vectors}
        settings = {"titles": True, "vectors": "float32", **was,
                    "model": model_sum(model, plugins.registry)}  # fmt: skip
        settings |= {k: v for k, v in given.items() if v is not None or k not in settings}
        why = None if old is None else changed(old, settings)
        if why is not None:
            warn(f"{why} since the index in {folder} was made: all texts are encoded again")
        loading = dataclasses.replace(loading, **{name: settings[name] for name in OF_MODEL})
        encode = TextEncoder(loading.load(model, plugins.registry), loading.batch_tokens)
        stems = language or (None if replace else about.get("stems"))
        stems = None if stems is None else [name for name in stems if name != "none"]
        about = {"model": model, "settings": settings, "files": named, "columns": columns,
                 "stems": stems}  # fmt: skip
        with progress(json=json) as reporter:
            counts = write_index(
                folder, encode, passages, about, None if why else old, progress=reporter.progress
            )
    if encode.note:
        warn(encode.note)
    many = counts["encoded"] + counts["kept"]
    if json:
        say_json({"index": str(folder), "texts": many, **counts})
        return
    said = ", ".join(f"{count:,} {name}" for name, count in counts.items())
    echo_err(f"{many:,} texts are in {folder}: {said}")


def _absolute(files: Iterable[str], plugins: Installed) -> list[str]:
    """Return the absolute paths of files; names of data sets stay."""
    named = []
    for file in files:
        if file not in plugins.registry.datasets() and Path(file).exists():
            file = str(Path(file).absolute())
            check_text(file, "FILE")
        named.append(file)
    return list(dict.fromkeys(named))


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
