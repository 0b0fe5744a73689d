"""Facts about a corpus, for a look before training."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from cse_core.data.columns import PAIR_COLUMNS, lacks_word_spaces
from cse_core.data.corpus import Corpus

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Counts = NDArray[np.integer[Any]]

_SAMPLE = 10_000


@dataclass(frozen=True)
class ColumnFacts:
    """Lengths of a column's texts; words are None where they are written without spaces."""

    words_mean: float | None
    characters_mean: float


@dataclass(frozen=True)
class CorpusFacts:
    """What ``cse data stats`` shows.

    Attributes:
        rows: Rows.
        documents: Distinct documents, None where the data has none.
        columns: Columns.
        blank_dropped: Blank rows and lines that were dropped.
        incomplete_dropped: Rows dropped for a blank positive, negative or fraternal text.
        duplicates: Rows whose text an earlier row has.
        words_mean: Words a text, split at white space: the mean; None, as the next two, where
            they are written without spaces.
        words_median: The median.
        words_p95: The 95th percentile.
        characters_mean: Characters a text: the mean.
        characters_median: The median.
        characters_p95: The 95th percentile.
        others: Lengths of the other columns that are encoded, such as ``fraternal``.
        synthetic: Whether some of the texts are made up.
        fingerprint: Hash of contents and columns.
        files: What each file gave.
        first: The first rows.
        messages: What loading had to say.
    """

    rows: int
    documents: int | None
    columns: tuple[str, ...]
    blank_dropped: int
    incomplete_dropped: int
    duplicates: int
    words_mean: float | None
    words_median: float | None
    words_p95: float | None
    characters_mean: float
    characters_median: float
    characters_p95: float
    others: dict[str, ColumnFacts]
    synthetic: bool
    fingerprint: str
    files: tuple[dict[str, Any], ...]
    first: tuple[dict[str, str], ...]
    messages: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values, for JSON."""
        return asdict(self)


def describe(corpus: Corpus, *, first: int = 3) -> CorpusFacts:
    """Return facts about a corpus.

    Args:
        corpus: The corpus.
        first: How many of its first rows to show.
    """
    import numpy as np

    words = _words(corpus, "text")
    characters = _characters(corpus, "text")
    documents = corpus.documents
    return CorpusFacts(
        rows=len(corpus),
        documents=None if documents is None else len(np.unique(documents[documents >= 0])),
        columns=corpus.names,
        blank_dropped=corpus.report.blank_dropped,
        incomplete_dropped=corpus.report.incomplete_dropped,
        duplicates=int((corpus.text_ids != np.arange(len(corpus))).sum()),
        words_mean=None if words is None else float(words.mean()),
        words_median=None if words is None else float(np.median(words)),
        words_p95=None if words is None else float(np.percentile(words, 95)),
        characters_mean=float(characters.mean()),
        characters_median=float(np.median(characters)),
        characters_p95=float(np.percentile(characters, 95)),
        others={name: _lengths(corpus, name) for name in PAIR_COLUMNS if name in corpus.names},
        synthetic=corpus.report.synthetic,
        fingerprint=corpus.fingerprint,
        files=tuple(asdict(file) for file in corpus.report.files),
        first=tuple(corpus.table.slice(0, first).to_pylist()),
        messages=corpus.report.messages,
    )


def _lengths(corpus: Corpus, column: str) -> ColumnFacts:
    words = _words(corpus, column)
    mean = None if words is None else float(words.mean())
    return ColumnFacts(mean, float(_characters(corpus, column).mean()))


def _words(corpus: Corpus, column: str) -> Counts | None:
    """Count the words of each row, split at white space; None where there are no spaces."""
    import numpy as np
    import pyarrow.compute as pc

    rows = np.unique(np.linspace(0, len(corpus) - 1, _SAMPLE).astype(int))
    if lacks_word_spaces(corpus.column(column).take(rows)):
        return None
    texts = corpus.table.column(column)
    return np.concatenate(
        [
            pc.list_value_length(pc.utf8_split_whitespace(texts.slice(start, 10_000))).to_numpy()
            for start in range(0, len(texts), 10_000)
        ]
    )


def _characters(corpus: Corpus, column: str) -> Counts:
    import numpy as np
    import pyarrow.compute as pc

    return np.asarray(pc.utf8_length(corpus.table.column(column)).to_numpy())
