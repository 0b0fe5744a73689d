"""``cse data translate``: a column of translations, made by a translation model."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cse_cli.machine.out_files import check_out_file, out_file
from cse_cli.models.loading import DeviceOption
from cse_cli.options.completion import complete_data
from cse_cli.plugins.installed import installed
from cse_cli.terminal.console import echo, echo_err, say_json
from cse_cli.terminal.progress import reporter_for
from cse_cli.terminal.quiet import silence
from cse_core.errors import CseError, did_you_mean

if TYPE_CHECKING:
    from cse_core.data import Corpus, TextColumn
    from cse_core.runtime.reporter import Reporter
    from cse_translate.shards import ShardFile
    from cse_translate.translator import TranslationOptions, Translator

_BATCHES = 8
"""Batches of a shard: what a kill can cost, at most."""


def translate(
    context: typer.Context,
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH...",
            help="Files, installed data sets, or owner/name of the hub.",
            autocompletion=complete_data,
        ),
    ],
    model: Annotated[
        str,
        typer.Option(
            "--model",
            "-m",
            metavar="MODEL",
            help="A translation model: a folder, or a hub name, which is then downloaded.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Where the rows go: .jsonl, .csv, .tsv or .parquet, each also .gz.",
        ),
    ],
    column: Annotated[
        str, typer.Option(metavar="NAME", help="The column that is translated.")
    ] = "text",
    into: Annotated[
        str, typer.Option(metavar="NAME", help="The column of the translations.")
    ] = "fraternal",
    source_language: Annotated[
        str | None,
        typer.Option(metavar="CODE", help="For models of several languages: eng_Latn, en_XX, en."),
    ] = None,
    target_language: Annotated[
        str | None,
        typer.Option(metavar="CODE", help="For models of several languages: deu_Latn, de_DE, de."),
    ] = None,
    prefix: Annotated[
        str,
        typer.Option(
            metavar="TEXT",
            help='Put before each text, for T5: "translate English to German: ".',
            show_default=False,
        ),
    ] = "",
    beams: Annotated[int, typer.Option(metavar="N", min=1, help="Beams; 1 is greedy.")] = 4,
    batch_size: Annotated[
        int, typer.Option(metavar="N", min=1, help="Texts translated at once.")
    ] = 32,
    max_length: Annotated[
        int, typer.Option(metavar="N", min=4, help="Longest text in tokens; longer ones are cut.")
    ] = 256,
    limit: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Only the first so many rows.")
    ] = None,
    device: DeviceOption = "auto",
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Translate a column of texts, for the column fraternal.

    A killed command goes on where it stopped when it is repeated.
    """
    from cse_cli.texts.writing import write_rows, written_format
    from cse_core.data import load_corpus
    from cse_core.recipes.settings import DataOptions
    from cse_translate.shards import ShardFile

    written_format(str(out))
    _check_other(out, paths)
    check_out_file(out)
    plugins = installed(context)
    corpus = load_corpus(DataOptions(path=tuple(paths), limit=limit), datasets=plugins.datasets)
    _check_columns(corpus, column, into)
    silence()
    from cse_translate.translator import TranslationOptions

    options = TranslationOptions(
        model=model,
        source_language=source_language,
        target_language=target_language,
        prefix=prefix,
        batch_size=batch_size,
        beams=beams,
        max_length=max_length,
    )
    translator = _translator(options, device)
    key = {**asdict(options), "column": column, "data": corpus.fingerprint}
    begun = ShardFile(out.with_name(f".{out.name}.part"), key)
    try:
        with reporter_for(quiet=quiet, json=json, opening=lambda: None) as reporter:
            _translate_rest(corpus.column(column), translator, begun, reporter)
    finally:
        begun.close()
    with out_file(out) as made, made.open("wb") as file:
        write_rows(_with_column(corpus, into, begun.texts), file, out.name)
    begun.remove()
    _tell(corpus, out, into, begun.texts, translator, column, json)


def _translate_rest(
    texts: TextColumn, translator: Translator, begun: ShardFile, reporter: Reporter
) -> None:
    """Translate what an earlier run left, a shard at a time."""
    if begun.found:
        reporter.message(f"{begun.found:,} rows were translated before: going on")
    size = _BATCHES * translator.options.batch_size
    for start in range(begun.found, len(texts), size):

        def progress(done: int, before: int = start) -> None:
            reporter.progress(before + done, len(texts), "rows translated")

        begun.add(translator.translate(texts[start : start + size], progress))


def _translator(options: TranslationOptions, device: str) -> Translator:
    from cse_core.runtime.device import resolve_device
    from cse_translate.translator import Translator

    flags = {"model.name": "--model", "train.device": "--device"}
    try:
        return Translator(options, resolve_device(device))
    except CseError as error:
        where = flags.get(error.where or "", error.where)
        raise CseError(error.what, where=where, value=error.value, hint=error.hint) from None


def _check_other(out: Path, paths: list[str]) -> None:
    """Refuse to write over the data: a limit, or rows that are dropped, would be lost."""
    if any(out.exists() and Path(path).exists() and out.samefile(path) for path in paths):
        raise CseError(
            "is the data itself", where="--out", value=str(out), hint="name another file"
        )


def _check_columns(corpus: Corpus, column: str, into: str) -> None:
    if column not in corpus.names:
        raise CseError(
            "the data has no such column",
            where="--column",
            value=column,
            hint=did_you_mean(column, corpus.names),
        )
    if not into.strip() or any(mark in into for mark in "\t\r\n"):
        raise CseError("is not a column name", where="--into", value=into, hint="write a word")
    if into in corpus.names:
        raise CseError(
            "the data has this column already",
            where="--into",
            value=into,
            hint="name another, or remove it from the data",
        )


def _with_column(corpus: Corpus, into: str, texts: list[str]) -> Any:
    import pyarrow as pa

    return corpus.table.append_column(into, pa.array(texts, pa.string()))


def _tell(
    corpus: Corpus,
    out: Path,
    into: str,
    texts: list[str],
    translator: Translator,
    column: str,
    json: bool,
) -> None:
    blank = sum(not text for text in texts)
    if json:
        say_json(
            {
                "file": str(out),
                "rows": len(texts),
                "column": into,
                "from": column,
                "blank": blank,
                "cut": translator.cut,
            }
        )
        return
    for message in corpus.report.messages:
        echo_err(message)
    if translator.cut:
        echo_err(f"{translator.cut:,} texts were cut to {translator.longest} tokens (--max-length)")
    if blank:
        echo_err(f"{blank:,} translations are blank: training drops these rows")
    echo(f"{len(texts):,} rows with {into} are in {out}; train with --data {out}")
