"""``cse index``: texts encoded once and kept, for ``cse search``."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace as replaced
from pathlib import Path
from typing import Annotated, Any

import typer

from cse_cli.api import (
    PROBE,
    ColumnsOption,
    Installed,
    Loading,
    ModelArgument,
    check_out_folder,
    check_text,
    complete_data,
    complete_model,
    echo_err,
    installed,
    model_flags,
    named_columns,
    progress,
    say_json,
    shared,
    source_of,
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
    level: Annotated[
        str | None,
        typer.Option(
            "--level",
            metavar="NAME",
            help="Keep the vectors of this level too, such as token, by which cse search --level "
            "orders the first passages; in float16, or int8 with --vectors int8, not cut by "
            "--truncate-dim; none: no more (default: as the index was made).",
            show_default=False,
        ),
    ] = None,
    language: Annotated[
        list[str] | None,
        typer.Option(
            "--language",
            metavar="NAME",
            help="Language of the texts, by whose stems --bm25 compares; may be repeated; none: "
            "words as they are; auto: guessed for each text (default: as the index was made, "
            "first auto).",
            show_default=False,
        ),
    ] = None,
    queries_model: Annotated[
        str | None,
        typer.Option(
            "--queries-model",
            metavar="MODEL",
            help="Another model that encodes queries, in the space of this one; none: this one "
            "(default: as the index was made, first none).",
            autocompletion=complete_model,
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
    from cse_search.opened import queries_encoder
    from cse_search.ranking import check_dimensions
    from cse_search.reading import read_passages, state_of

    plugins = installed(context)
    loading.check(model, plugins.registry)
    folder = index_folder(model, out)
    if folder is None:
        hint = "name the folder of the index: --out DIR"
        raise CseError("is not a run: its index needs a folder", where="MODEL", value=model,
                       hint=hint)  # fmt: skip
    known = ["auto", "none", *stem_languages()]
    for name in {*(language or ())}.difference(known):
        hint = did_you_mean(name, known)
        raise CseError("has no stemmer", where="--language", value=name, hint=hint)
    if replace and not files:
        raise CseError("no files are named", where="--replace", hint="name a folder or files")
    check_out_folder(folder)
    with updating(folder, "--out") as old:
        was: Mapping[str, Any] = {} if old is None else old.about
        named = _absolute(files or (), plugins)
        columns = {**({} if replace else was.get("columns", {})), **named_columns(sets)}
        if replace and old is not None:
            lost = [name for name in old.about["files"] if name not in named]
            if lost:
                warn(f"{folder} loses {_listed(lost)}")
        else:
            named = _added(named, was.get("files", ()), folder, plugins)
        if old is not None and (counts := old.outdated):
            echo_err(f"files since the last update: {counts}")
        passages = read_passages(named, plugins.registry, columns)
        state = state_of((passage.file for passage in passages), named)
        settings = {"titles": True, "vectors": "float32", "level": None, **was.get("settings", {}),
                    "model": model_sum(model, plugins.registry)}  # fmt: skip
        given = {name: getattr(loading, name) for name in OF_MODEL}
        given |= {"titles": titles, "vectors": vectors, "level": level}
        settings |= {k: v for k, v in given.items() if v is not None or k not in settings}
        settings["level"] = None if settings["level"] == "none" else settings["level"]
        if why := old and changed(old, settings):
            warn(f"{why} since the index in {folder} was made: all texts are encoded again")
        before, now = was.get("precision", loading.precision), loading.precision
        if before != now and not why:
            what = f"texts that are kept were encoded in {before}, new ones in {now}"
            warn(f"{what}; remove {folder} to encode all again")
        loading = replaced(loading, **{name: settings[name] for name in OF_MODEL})
        loaded = loading.load(model, plugins.registry)
        encode = TextEncoder(loaded, loading.batch_tokens)
        queries = was.get("queries") if queries_model is None else None
        probe = was.get("probe") if queries is not None else None
        if queries_model not in (None, "none"):
            asked = queries_encoder(queries_model, loading, plugins)([PROBE], role="query")
            probe = asked[0].tolist()
            dimension = encode(["a"], role="document").shape[1]
            check_dimensions(asked, queries_model, dimension, model)
            named_model = Path(queries_model).expanduser()
            if named_model.exists():
                queries_model = str(named_model.absolute())
            queries = {"model": queries_model, "sum": model_sum(queries_model, plugins.registry)}
        if probe is None:
            if loading.precision != "fp32":  # a search computes in it
                loaded = replaced(loading, precision="fp32").load(model, plugins.registry)
            probe = TextEncoder(loaded)([PROBE], role="query")[0].tolist()
        stems = was.get("stems") if language is None else [n for n in language if n != "none"]
        stems = None if "auto" in (stems or ()) else stems
        about = {"model": model, "settings": settings, "files": named, "columns": columns,
                 "queries": queries, "stems": stems, "probe": probe, "precision": now}  # fmt: skip
        with progress(json=json) as reporter:
            counted = write_index(
                folder, encode, passages, about, state, None if why else old,
                progress=reporter.progress,
            )  # fmt: skip
    if encode.note:
        warn(encode.note)
    many = counted["encoded"] + counted["kept"]
    if json:
        say_json({"index": str(folder), "texts": many, **counted})
        return
    said = ", ".join(f"{count:,} {name}" for name, count in counted.items())
    echo_err(f"{many:,} texts are in {folder}: {said}")


def _added(named: list[str], before: Iterable[str], folder: Path, plugins: Installed) -> list[str]:
    """Return the files that an index has and that are still there, and those that are named."""

    def is_there(name: str) -> bool:
        place = source_of(name, plugins.registry)
        return not os.path.isabs(name) or os.path.exists(place.name if place else name)

    kept = [name for name in before if is_there(name)]
    gone = [name for name in before if name not in kept]
    every = list(dict.fromkeys((*kept, *named)))
    if gone and not every:
        raise CseError("none of its files is there any more", where=str(folder), hint="name others")
    if not every:
        raise CseError("no texts are named", where="FILE", hint="name a folder or files of texts")
    if gone:
        warn(f"{_listed(gone)}: no longer there, so {folder} loses their texts")
    if kept and len(every) > len(kept):
        echo_err(f"{folder} keeps {_listed(kept)}; --replace leaves them out")
    return every


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
