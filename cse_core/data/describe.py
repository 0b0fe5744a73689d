"""Facts about a corpus, for a look before training."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from cse_core.data.corpus import Corpus


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
        words_mean: Words a text, split at white space: the mean.
        words_median: The median.
        words_p95: The 95th percentile.
        characters_mean: Characters a text, for languages without spaces.
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
    words_mean: float
    words_median: float
    words_p95: float
    characters_mean: float
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
    import pyarrow.compute as pc

    text = corpus.table.column("text")
    words = np.concatenate(
        [
            pc.list_value_length(pc.utf8_split_whitespace(text.slice(start, 10_000))).to_numpy()
            for start in range(0, len(text), 10_000)
        ]
    )
    documents = corpus.documents
    return CorpusFacts(
        rows=len(corpus),
        documents=None if documents is None else len(np.unique(documents[documents >= 0])),
        columns=corpus.names,
        blank_dropped=corpus.report.blank_dropped,
        incomplete_dropped=corpus.report.incomplete_dropped,
        duplicates=int((corpus.text_ids != np.arange(len(corpus))).sum()),
        words_mean=float(words.mean()),
        words_median=float(np.median(words)),
        words_p95=float(np.percentile(words, 95)),
        characters_mean=float(pc.mean(pc.utf8_length(text)).as_py()),
        synthetic=corpus.report.synthetic,
        fingerprint=corpus.fingerprint,
        files=tuple(asdict(file) for file in corpus.report.files),
        first=tuple(corpus.table.slice(0, first).to_pylist()),
        messages=corpus.report.messages,
    )
