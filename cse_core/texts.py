"""Training texts: options ``data.*``, the columns that a run asks for, and what a reader gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal, NamedTuple, Protocol

from pydantic import Field

from cse_core.options import Location, Options
from cse_core.records import ColumnType

Unit = Literal["sentence", "paragraph", "document"]
Lists = Literal["rows", "draw", "all"]
"""What becomes of the lists of texts in a column: rows of their own, a text drawn in each step, or
all texts of the row."""
Cell = str | Sequence[str] | Sequence[float] | float | None
"""What a row has in a column: a text, a number, several of one, or nothing."""


class DataOptions(Options):
    """The training texts."""

    path: tuple[Location, ...] = ("starter",)
    """Files, names of installed data sets, or names on the Hugging Face hub."""
    weights: tuple[Annotated[float, Field(gt=0)], ...] = ()
    """How often an epoch uses the rows of each data.path: 2 twice, 0.5 half of them, drawn once;
    ``--data FILE:2`` sets it. Empty: once."""
    prompts: tuple[str, ...] = ()
    """Text before every training text of each data.path."""
    unit: Unit = "sentence"
    """What a row is if the data has documents."""
    titles: Literal["before", "none"] = "before"
    """Titles of passages in lists (``positive_passages``): before their texts, as tevatron trains,
    or left out. A column of titles stays one."""
    columns: dict[str, str] = Field(default_factory=dict)
    """Columns of the file by our names: ``text = "sentence1"``; ``@source`` is the number of the
    row's file in data.path, from 0."""
    limit: int | None = Field(default=None, ge=1)
    """Use only the first N rows, blank ones counted."""
    held_out: int = Field(default=0, ge=0)
    """Keep N documents (texts, where there are no documents), at most a fifth, out of training for
    dev sets that suites make of them."""
    blank: Literal["drop", "refuse"] = "drop"
    """Drop or refuse rows that lack a text the run reads."""
    shuffle: bool = True
    """Shuffle the rows in every epoch."""
    split_tokens: int | None = Field(default=None, ge=1)
    """Split texts into pieces of at most N tokens, without special tokens; by default not."""


class NeededColumns(NamedTuple):
    """The columns that a run reads of the data beside the text.

    Attributes:
        required: All of them.
        encoded: Those whose texts views encode, which have no blank cell.
        types: What those hold that a part's record names with a type.
        partial: Those that only losses of some rows read: a file may lack one.
        lists: Those whose lists of texts stay lists, and what becomes of them.
        beside: Those with a number for each text of another, which may be lists as its texts are.
    """

    required: tuple[str, ...] = ()
    encoded: tuple[str, ...] = ()
    types: Mapping[str, ColumnType] = {}
    partial: frozenset[str] = frozenset()
    lists: Mapping[str, Lists] = {}
    beside: Mapping[str, str] = {}


NO_COLUMNS = NeededColumns()
FILLED = ("document", "title")
"""Columns that rows may lack: those of no document, and those of a file without the column."""


@dataclass(frozen=True)
class Wanted:
    """What is asked of a source.

    Attributes:
        limit: Rows that are taken at most; None for all.
        unit: What a row of a document is.
        split: ``train``, ``dev`` or ``test``, of a source with splits whose name says none.
        options: What stands behind ``?`` in the name: ``{"table": "notes"}``.
        titles: Whether titles of passages in lists stand before their texts.
    """

    limit: int | None = None
    unit: Unit = "sentence"
    split: Literal["train", "dev", "test"] = "train"
    options: Mapping[str, str] = field(default_factory=dict)
    titles: bool = True


@dataclass
class Seen:
    """What was noticed while a source was read.

    Attributes:
        articles: Whether it held articles, whose rows depend on the unit.
        left_out: Columns that hold no plain values -> what they hold.
        from_header: Whether the columns' names are the first line of a text file.
        grades: The column, by the core's name, that says how similar text and positive are; empty
            where pairs are positives.
        unnamed: Whether its one column has no name that a user could say.
        messages: What a user should know, a line each, without the name of the source.
    """

    articles: bool = False
    left_out: dict[str, str] = field(default_factory=dict)
    from_header: bool = False
    grades: str = ""
    unnamed: bool = False
    messages: list[str] = field(default_factory=list)


class Source(Protocol):
    """Reads texts of one kind; made again for each reading.

    It may also have ``tables(name, wanted) -> Iterator[pyarrow.Table]``, called in place of
    ``rows``, whose first table has every column; ``pairs(split) -> list[dict]``, the graded pairs
    of a data set in a package (sentence1, sentence2, score, subset); ``title(name) -> str``, what
    a dev set of the rows that were read is called; ``commit(name) -> str``, their version; and
    ``seen``, a :class:`Seen`, what it noticed.
    """

    def rows(self, name: str, wanted: Wanted) -> Iterator[tuple[str, Mapping[str, Cell]]]:
        """Yield the rows in their order, blank ones too, each behind its place: ``a.xlsx, row 2``.

        The caller stops at ``wanted.limit``. The file of a name with an ending is there.

        Raises:
            CseError: If the name has nothing to read, or a row is malformed.
        """


@dataclass(frozen=True)
class LoadReport:
    """What was seen in loading a corpus.

    Attributes:
        names: The sources that were read.
        blank_dropped: Rows and lines dropped because their text is blank.
        incomplete_dropped: Rows dropped because another column that the run needs is blank.
        made_up: Names of sources whose texts are made up.
        messages: What a user should know of the data, a line each.
        commits: That of each data set of the hub, where it is known.
    """

    names: tuple[str, ...] = ()
    blank_dropped: int = 0
    incomplete_dropped: int = 0
    made_up: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    commits: Mapping[str, str] = field(default_factory=dict)

    @property
    def lines(self) -> tuple[str, ...]:
        """Return the messages, and whether texts are made up."""
        made_up = f"{', '.join(self.made_up)}: synthetic texts, made up to try things; no benchmark"
        return (*self.messages, made_up) if self.made_up else self.messages


def in_context(text: str, title: str = "", headings: str = "") -> str:
    """Put title and headings before a passage, a line for each.

    A first heading that repeats the title stands once.

    Args:
        text: The passage.
        title: Title of its document, empty without one.
        headings: The headings it stands under, outermost first: ``Setup > On Linux``.
    """
    if title and (headings == title or headings.startswith(f"{title} > ")):
        title = ""
    return "\n".join(filter(None, (title, headings, text)))
