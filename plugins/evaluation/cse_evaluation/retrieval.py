"""Retrieval scores: titles found from documents, and what TF-IDF finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cse_core.evaluation.documents import DocumentSet
from cse_core.evaluation.retrieval import Recall, document_vectors, recall_at
from cse_core.evaluation.vectors import Encode, EncodedTexts, unit
from cse_evaluation.lexical import units_of
from cse_evaluation.probe import Progress


@dataclass(frozen=True, kw_only=True)
class RetrievalResult:
    """How often a document's title is among the first k of all titles.

    Attributes:
        name: The set, ``bbc_news.all``.
        recall: Recall@k x100 by k.
        words: The same of TF-IDF, None where it was not asked for.
        units: What TF-IDF counted.
        seeds: Training runs of the encoder behind the numbers.
    """

    name: str
    recall: Recall
    documents: int
    titles: int
    sentences: int
    untitled: int
    fingerprint: str
    words: Recall | None = None
    units: str = ""
    seeds: int = 1

    def to_json(self) -> dict[str, Any]:
        """Return everything, scores rounded to 4 places."""
        value: dict[str, Any] = _named(self.recall)
        value |= {
            "setting": "document to title, mean of sentence vectors, cosine",
            "split": self.name.rpartition(".")[2],
            "seeds": self.seeds,
            "documents": self.documents,
            "titles": self.titles,
            "sentences": self.sentences,
            "untitled": self.untitled,
            "fingerprint": self.fingerprint,
        }
        if self.words is not None:
            value["tfidf"] = _named(self.words)
            value["lexical"] = {"idf": "the documents", "units": self.units}
        return value


def _named(recall: Recall) -> dict[str, Any]:
    return {f"recall@{k}": round(value, 4) for k, value in recall.items()}


def evaluate_retrieval(
    encode: Encode,
    documents: DocumentSet,
    words: tuple[Recall, str] | None = None,
    progress: Progress | None = None,
) -> RetrievalResult:
    """Score an encoder on a set of documents.

    Args:
        encode: The encoder.
        documents: The documents.
        words: What ``score_words`` returned for them.
        progress: Hears how many sentences are encoded.

    Raises:
        CseError: If the encoder's vectors are not finite.
    """
    vectors = document_vectors(encode, documents, progress)
    titles = EncodedTexts(encode, documents.titles).unit(documents.titles)
    return RetrievalResult(
        name=documents.name,
        recall=recall_at(unit(vectors), titles, documents.gold),
        documents=len(documents),
        titles=len(documents.titles),
        sentences=len(documents.rows),
        untitled=documents.untitled,
        fingerprint=documents.fingerprint,
        words=None if words is None else words[0],
        units="" if words is None else words[1],
    )


def score_words(documents: DocumentSet) -> tuple[Recall, str]:
    """Return the recall of TF-IDF, and what it counted.

    Counts of words times log((N + 1) / (df + 1)) + 1 over the N documents, scaled to length 1, of a
    document's sentences together and of titles.
    """
    from scipy.sparse import csr_array
    from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

    units, named = units_of(documents.titles)
    counter = CountVectorizer(analyzer=units)
    whole = [
        " ".join(documents.sentences.take(documents.rows[begin:end]))
        for begin, end in zip(documents.offsets[:-1], documents.offsets[1:], strict=True)
    ]
    counts = counter.fit_transform(whole)
    weigh = TfidfTransformer().fit(counts)
    rows = csr_array(weigh.transform(counts))
    titles = csr_array(weigh.transform(counter.transform(documents.titles)))
    return recall_at(rows, titles, documents.gold), named  # type: ignore[arg-type]
