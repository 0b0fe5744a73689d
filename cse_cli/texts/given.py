"""Texts that a command is given: on its command line, in a file, or on stdin."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cse_cli.terminal.console import echo_err
from cse_core.errors import CseError, truncate

if TYPE_CHECKING:
    import pyarrow as pa

    from cse_core.registry.registry import Registry

STDIN = "-"
_COLUMN = "data.columns."
Places = dict[str, list[tuple[str, int]]]
"""By text, in which files it is and where: the row of a table, the passage of a document."""

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


def rows_of(
    file: str, registry: Registry, columns: dict[str, str] | None = None, *, titled: bool = True
) -> list[str]:
    """Return the text of each row of a file, blank ones too, and report what reading noticed.

    With ``titled``, as texts are searched, a row's title and headings stand before its text.
    """
    from cse_core.texts import in_context

    table, messages = _table(file, registry, columns or {})
    for message in messages:
        echo_err(message)
    texts: list[str] = table.column("text").to_pylist()
    if not titled or "title" not in table.column_names:
        return texts
    titles = [title if isinstance(title, str) else "" for title in table["title"].to_pylist()]
    if "headings" in table.column_names and "line" in table.column_names:
        return [*map(in_context, texts, titles, table["headings"].to_pylist())]
    both = zip(titles, texts, strict=True)
    return [text if text.startswith(title) else f"{title} {text}".strip() for title, text in both]


def read_places(
    files: Sequence[str], registry: Registry, columns: dict[str, str]
) -> tuple[Places, list[str]]:
    """Return the texts of files and folders with their places, and what to say of them.

    They are tables, txt files with a text a line, and Markdown and HTML documents or folders.
    """
    from cse_defaults.texts.sources import find_source

    places: Places = {}
    notes: list[str] = []
    # Only documents know before they are read that they are some.
    documents = [f for f in files if find_source(f, registry, "FILE").seen.articles]

    for file in files:
        if file not in documents:
            for row, text in enumerate(rows_of(file, registry, columns), 1):
                places.setdefault(text, []).append((file, row))
            continue
        table, said = _table(file, registry, {})
        notes += said
        folder, numbers = Path(file).expanduser(), Counter[str]()
        for row in table.select(["text", "document"]).to_pylist():
            name = str(folder / row["document"]) if folder.is_dir() else file
            numbers[name] += 1
            places.setdefault(row["text"], []).append((name, numbers[name]))
    places.pop("", None)
    if len(documents) == len(files):
        check_lines(columns)
    if not places:
        raise CseError("no text is in these files", where=files[0])
    return places, notes


def _table(file: str, registry: Registry, columns: dict[str, str]) -> tuple[pa.Table, list[str]]:
    """Return the rows of a file by the core's names, and what reading noticed."""
    from cse_core.texts import DataOptions
    from cse_defaults.texts import read_data

    data = read_data(DataOptions(path=(file,), columns=columns), registry)
    return data.sources[0].table, data.messages


def _of_file(file: str, registry: Registry, columns: dict[str, str]) -> Iterator[str]:
    from cse_defaults.texts.files import file_lines
    from cse_defaults.texts.sources import find_source

    source = None if file == STDIN else find_source(file, registry)
    if source is not None and not source.seen.unnamed:
        texts = rows_of(file, registry, columns, titled=False)
        if blank := texts.count(""):
            what = "blank row has" if blank == 1 else "blank rows have"
            echo_err(f"{file}: {blank:,} {what} the vector of an empty text")
        return iter(texts)
    check_lines(columns)
    if source is None:
        return _filled(_stdin(), "stdin")
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


def _stdin() -> Iterator[str]:
    from cse_core.files import read_error
    from cse_defaults.texts.files import text_lines

    try:
        yield from text_lines(sys.stdin.buffer, "stdin")
    except OSError as error:
        raise read_error("stdin", error) from None


def unknown_line(unknown: int, tokens: int, model: str) -> str:
    """Describe the tokens that a vocabulary lacks; empty if they are one in twenty at most."""
    if unknown <= tokens / 20:
        return ""
    share = f"{100 * unknown / tokens:.0f} % of the tokens are unknown to {truncate(model, 200)}"
    return f"{share}: choose a model that knows the language and the signs of the texts"
