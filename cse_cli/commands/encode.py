"""``cse encode``: texts to vectors."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args

import typer

from cse_cli.machine.out_files import check_out_file, out_file
from cse_cli.models.encoding import BLOCK, TextEncoder
from cse_cli.models.loading import Loading, ModelArgument, model_flags
from cse_cli.models.processes import shared
from cse_cli.plugins.installed import installed
from cse_cli.terminal.console import echo, echo_err, warn
from cse_cli.texts.given import STDIN, ColumnsOption, as_they_come, texts_of
from cse_core.errors import CseError, did_you_mean
from cse_core.suites import Role

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Blocks = Iterator[tuple[list[str], Any]]

ENDINGS = (".npy", ".jsonl")


@shared
@model_flags
def encode(
    context: typer.Context,
    model: ModelArgument,
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE|-",
            help="One text per line (txt), or rows of csv, tsv, jsonl, json, parquet; - is stdin, "
            "whose lines are answered as they come.",
            show_default=False,
        ),
    ] = None,
    text: Annotated[
        list[str] | None,
        typer.Option("--text", "-t", metavar="TEXT", help="A text; may be repeated."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="File to write: .npy (float32, [N, D]) or .jsonl (text and vector per line). By "
            "default jsonl to stdout.",
        ),
    ] = None,
    normalize: Annotated[
        bool, typer.Option("--normalize", help="Scale each vector to length 1.")
    ] = False,
    level: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Write the vectors of a level of which a text has several, such as token, to "
            "jsonl (text and vectors per line).",
        ),
    ] = None,
    role: Annotated[
        str | None,
        typer.Option(
            metavar="query|document",
            help="What the texts are, for a model that encodes queries and documents otherwise "
            "(default: its default prompt, and at a --level queries).",
        ),
    ] = None,
    sets: ColumnsOption = None,
    *,
    loading: Loading,
) -> None:
    """Encode texts: one vector for each line."""
    plugins = installed(context)
    if role not in (None, *get_args(Role)):
        raise CseError("must be query or document", where="--role", value=role)
    as_role = cast("Role | None", role)
    if out is not None:
        _check_out(out)
        if level is not None and out.suffix != ".jsonl":
            raise CseError("holds one vector of a text, and --level gives several",
                           where="--out", value=str(out), hint="name it *.jsonl")  # fmt: skip
    if level is not None and loading.truncate_dim is not None:
        what = "cuts one vector of a text, and --level gives several"
        raise CseError(what, where="--truncate-dim", value=loading.truncate_dim)
    loading.check(model, plugins.registry)
    texts = texts_of(file, text or (), plugins.registry, sets)
    loaded = loading.load(model, plugins.registry)
    encoder = TextEncoder(loaded, loading.batch_tokens)
    come = out is None and file in (None, STDIN)
    groups: Iterable[Iterable[str]] = as_they_come(texts, BLOCK) if come else [texts]
    blocks: Blocks = chain.from_iterable(
        encoder.several_blocks(group, level, as_role)
        if level
        else encoder.blocks(group, role=as_role)
        for group in groups
    )
    if normalize:
        from cse_cli.models.geometry import unit

        def scaled(made: Any) -> Any:
            several = isinstance(made, list)
            return [scaled(rows) for rows in made] if several else unit(made).astype("float32")

        blocks = ((batch, scaled(made)) for batch, made in blocks)
    if out is None:
        for block in blocks:
            for line in _lines(iter([block])):
                echo(line)
            sys.stdout.flush()
    elif out.suffix == ".npy":
        _write_npy(out, blocks)
    else:
        with out_file(out) as made, made.open("w", encoding="utf-8") as lines:
            lines.writelines(f"{line}\n" for line in _lines(blocks))
    if out is not None:
        encodes = loaded.sentence_encoder
        dimension = min(encodes.dimension, encodes.truncate_dim or encodes.dimension)
        what = f"{encoder.texts:,} vectors of {dimension} numbers are"
        echo_err(f"{what if level is None else f'vectors of {encoder.texts:,} texts are'} in {out}")
    if encoder.note:
        warn(encoder.note)


def _lines(blocks: Blocks) -> Iterator[str]:
    import json

    def numbers(vector: NDArray[np.float32]) -> str:
        # Nine significant digits are what a float32 needs to come back the same.
        items = map(numbers, vector) if vector.ndim > 1 else (f"{value:.9g}" for value in vector)
        return f"[{', '.join(items)}]"

    for texts, made in blocks:
        for text, vector in zip(texts, made, strict=True):
            key = "vector" if vector.ndim == 1 else "vectors"
            yield f'{{"text": {json.dumps(text, ensure_ascii=False)}, "{key}": {numbers(vector)}}}'


def _check_out(path: Path) -> None:
    if path.suffix not in ENDINGS:
        raise CseError(
            "unknown file type",
            where="--out",
            value=str(path),
            hint=f"name it {' or '.join('*' + ending for ending in ENDINGS)}"
            if not path.suffix
            else did_you_mean(path.suffix, ENDINGS),
        )
    check_out_file(path)


def _write_npy(path: Path, blocks: Blocks) -> None:
    """Write vectors block by block behind a header whose number of rows is filled in at the end."""
    from numpy.lib import format as npy

    count = dimension = 0
    with out_file(path) as made, made.open("wb") as file:

        def write_header() -> None:
            # A header is padded to a fixed length by numpy, with room for more digits.
            shape = {"descr": "<f4", "fortran_order": False, "shape": (count, dimension)}
            file.seek(0)
            npy.write_array_header_1_0(file, shape)

        for _, vectors in blocks:
            if not dimension:
                dimension = vectors.shape[1]
                write_header()
            file.write(vectors.astype("<f4", copy=False).tobytes())
            count += len(vectors)
        write_header()
