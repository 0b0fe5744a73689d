"""Texts that a command is given: on its command line, in a file, or on stdin."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import TYPE_CHECKING, Annotated

import typer

from cse_cli.terminal.console import echo_err
from cse_core.errors import CseError, truncate

if TYPE_CHECKING:
    import pyarrow as pa

    from cse_core.registry.registry import Registry

STDIN = "-"
_COLUMN = "data.columns."
_PAUSE = 0.02
"""Seconds without a line after which those before it are used."""

ColumnsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=NAME",
        help="Which column of a table to take: data.columns.text=NAME.",
    ),
]


def named_columns(sets: Sequence[str] | None) -> dict[str, str]:
    """Return ``data.columns`` as ``--set`` gives it to a command that only reads texts."""
    names = {}
    for item in sets or ():
        path, _, name = item.partition("=")
        ours = path.removeprefix(_COLUMN)
        if ours in (path, "") or not name:
            hint = f"write --set {_COLUMN}text=NAME"
            raise CseError("sets no column of the texts", where="--set", value=item, hint=hint)
        names[ours] = name
    return names


def check_lines(columns: dict[str, str]) -> None:
    """Refuse columns where only lines and documents are read, whose one column is the text."""
    from cse_defaults.texts.columns import check_named

    check_named(columns, [{"text": "text"}])


def texts_of(
    file: str | None, given: Sequence[str], registry: Registry, sets: Sequence[str] | None = None
) -> Iterator[str]:
    """Return the texts to encode, one for each vector: the given ones, then those of a file.

    Lines of a txt file and of stdin, ``-``, are taken as they are, and rows of other files and of
    installed data sets as they stand, blank ones too, so that vector N belongs to line or row N.
    """
    if file is None and not given:
        if sys.stdin.isatty():
            hint = "write --text 'a sentence', or name a file; - reads stdin"
            raise CseError("no text to encode", hint=hint)
        file = STDIN
    columns = named_columns(sets)
    if file is None:
        check_lines(columns)
        return iter(given)
    return chain(given, _of_file(file, registry, columns))


def rows_of(file: str, registry: Registry, columns: dict[str, str] | None = None) -> list[str]:
    """Return the text of each row of a file, blank ones too, and report what reading noticed."""
    texts: list[str] = _table(file, registry, columns).column("text").to_pylist()
    return texts


def _table(file: str, registry: Registry, columns: dict[str, str] | None = None) -> pa.Table:
    from cse_core.texts import DataOptions
    from cse_defaults.texts import read_data

    data = read_data(DataOptions(path=(file,), columns=columns or {}), registry)
    for message in data.messages:
        echo_err(message)
    return data.sources[0].table


def read_rows(
    files: Sequence[str], registry: Registry, columns: dict[str, str]
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the rows of files to search, blank ones too, each with the file that it is in.

    A row has ``text``, and ``title``, ``headings`` and ``line`` where they are known. Read are
    tables, txt files with a text a line, and Markdown and HTML documents or folders of documents.
    """
    from cse_defaults.texts.sources import find_source

    # Only documents know before they are read that they are some.
    documents = [f for f in files if find_source(f, registry, "FILE").seen.articles]
    if len(documents) == len(files):
        check_lines(columns)
    for file in files:
        folder, read = Path(file).expanduser(), {"text", "title", "headings"}
        inside = file in documents and folder.is_dir()
        table = _table(file, registry, {} if file in documents else columns)
        read |= {"line", "document"} if file in documents else set()
        for part in table.select([n for n in table.column_names if n in read]).to_batches():
            for row in part.to_pylist():
                cells = {name: cell for name, cell in row.items() if isinstance(cell, str)}
                yield str(folder / cells["document"]) if inside else file, cells


def _of_file(file: str, registry: Registry, columns: dict[str, str]) -> Iterator[str]:
    from cse_defaults.texts.files import file_lines
    from cse_defaults.texts.sources import find_source

    source = None if file == STDIN else find_source(file, registry)
    if source is not None and not source.seen.unnamed:
        texts = rows_of(file, registry, columns)
        if blank := texts.count(""):
            what = "blank row has" if blank == 1 else "blank rows have"
            echo_err(f"{file}: {blank:,} {what} the vector of an empty text")
        return iter(texts)
    check_lines(columns)
    if source is None:
        return _filled(stdin_lines(), "stdin")
    return _filled(file_lines(file), file)


def _filled(lines: Iterator[str], where: str) -> Iterator[str]:
    """Return the lines; refuse them before the first is used if all of them are blank."""
    blank: list[str] = []
    for line in lines:
        blank.append(line)
        if line.strip():
            return chain(blank, lines)
    state = "has only blank lines" if blank else "is empty"
    raise CseError(f"expected one text per line, but {truncate(where, 200)} {state}")


def stdin_lines() -> Iterator[str]:
    """Yield the lines of stdin as they come."""
    from cse_core.files import read_error
    from cse_defaults.texts.files import text_lines

    try:
        yield from text_lines(sys.stdin.buffer, "stdin")
    except OSError as error:
        raise read_error("stdin", error) from None


def as_they_come(lines: Iterator[str], most: int) -> Iterator[list[str]]:
    """Yield lines in blocks: those that are there, ``most`` at most, without waiting for more.

    A thread reads them. What it raises is raised here, behind the lines before it.
    """
    read: Queue[str | BaseException | None] = Queue(2 * most)

    def fill() -> None:
        try:
            for line in lines:
                read.put(line)
            read.put(None)
        except BaseException as error:  # noqa: BLE001 - it is raised where the lines are used
            read.put(error)

    Thread(target=fill, daemon=True).start()
    last: str | BaseException | None = ""
    while isinstance(last, str):
        block: list[str] = []
        with suppress(Empty):
            while isinstance(last, str) and len(block) < most:
                last = read.get(timeout=_PAUSE if block else None)
                block += [last] if isinstance(last, str) else []
        if block:
            yield block
    if last is not None:
        raise last


def unknown_line(unknown: int, tokens: int, model: str) -> str:
    """Describe the tokens that a vocabulary lacks; empty if they are one in twenty at most."""
    if unknown <= tokens / 20:
        return ""
    share = f"{100 * unknown / tokens:.0f} % of the tokens are unknown to {truncate(model, 200)}"
    return f"{share}: choose a model that knows the language and the signs of the texts"
