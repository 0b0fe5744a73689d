"""Facts about a corpus, for a look before training."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from cse_core.data.columns import PAIR_COLUMNS, lacks_word_spaces
from cse_core.data.corpus import Corpus

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Counts = NDArray[np.integer[Any]]

_SAMPLE = 10_000


def describe(corpus: Corpus, *, first: int = 3) -> dict[str, Any]:
    """Return facts about a corpus as plain values: what ``cse data stats`` shows.

    ``words_mean``, ``_median`` and ``_p95`` (the 95th percentile) count words, split at white
    space; they are None where texts are written without spaces. ``others`` has the mean lengths of
    the other columns that are encoded; ``documents`` is None where the data has none;
    ``incomplete_dropped`` counts rows with a blank positive, negative or fraternal text.

    Args:
        corpus: The corpus.
        first: How many of its first rows to show.
    """
    import numpy as np

    documents = corpus.documents
    return {
        "rows": len(corpus),
        "documents": None if documents is None else len(np.unique(documents[documents >= 0])),
        "columns": corpus.names,
        "blank_dropped": corpus.report.blank_dropped,
        "incomplete_dropped": corpus.report.incomplete_dropped,
        "duplicates": int((corpus.text_ids != np.arange(len(corpus))).sum()),
        **_summary("words", _words(corpus, "text")),
        **_summary("characters", _characters(corpus, "text")),
        "others": {
            name: {
                "words_mean": _summary("words", _words(corpus, name))["words_mean"],
                "characters_mean": float(_characters(corpus, name).mean()),
            }
            for name in PAIR_COLUMNS
            if name in corpus.names
        },
        "synthetic": corpus.report.synthetic,
        "fingerprint": corpus.fingerprint,
        "files": tuple(asdict(file) for file in corpus.report.files),
        "first": tuple(corpus.table.slice(0, first).to_pylist()),
        "messages": corpus.report.messages,
    }


def _summary(what: str, counts: Counts | None) -> dict[str, float | None]:
    import numpy as np

    if counts is None:
        return {f"{what}_{name}": None for name in ("mean", "median", "p95")}
    return {
        f"{what}_mean": float(counts.mean()),
        f"{what}_median": float(np.median(counts)),
        f"{what}_p95": float(np.percentile(counts, 95)),
    }


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
