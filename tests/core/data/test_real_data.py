"""Real files at their real size; skipped where they are absent."""

from __future__ import annotations

import time

import pytest

from cse_cli.texts.corpus_facts import describe
from cse_core.data import Corpus, load_corpus
from cse_core.recipes.settings import DataOptions
from tests.shared import shared_path


def load(name: str, unit: str = "sentence") -> tuple[Corpus, float]:
    options = DataOptions.model_validate(
        {"path": (str(shared_path(f"data/{name}")),), "unit": unit}
    )
    start = time.perf_counter()
    corpus = load_corpus(options, datasets={})
    return corpus, time.perf_counter() - start


def test_sentences() -> None:
    corpus, seconds = load("sentences/wiki_en_300k.txt.gz")
    facts = describe(corpus)
    assert (facts.rows, facts.duplicates, facts.blank_dropped) == (300_000, 0, 0)
    assert facts.words_mean == pytest.approx(20.6, abs=0.05)
    assert seconds < 20, "loading took much longer than the second it should"


@pytest.mark.parametrize(("unit", "rows"), [("sentence", 351_949), ("document", 14_424)])
def test_articles(unit: str, rows: int) -> None:
    corpus, seconds = load("docs/wiki_en.jsonl.gz", unit)
    assert len(corpus) == rows
    assert corpus.names == ("text", "document", "title")
    assert corpus.documents is not None
    assert corpus.documents[0] == 0 and corpus.documents.max() == 14_423
    assert seconds < 40, "loading took much longer than the seconds it should"


def test_stories() -> None:
    corpus, _ = load("docs/bbc_news.jsonl.gz", "document")
    assert len(corpus) == 2_103
    assert set(corpus.column("label")) == {"business", "entertainment", "politics", "sport", "tech"}


def test_parallel() -> None:
    corpus, _ = load("parallel/multi30k.train.en-de.tsv.gz")
    assert len(corpus) == 28_678
    assert corpus.names == ("text", "fraternal")
    assert corpus.column("fraternal")[0].startswith("Zwei junge weiße Männer")


@pytest.mark.parametrize(
    ("name", "rows", "columns"),
    [
        ("sts/stsb.train.tsv.gz", 5_749, ("text", "subset", "score", "sentence2")),
        ("sts/sickr.train.tsv.gz", 4_500, ("text", "entailment", "score", "sentence2")),
        ("transfer/trec.train.tsv.gz", 5_452, ("text", "label", "fine_label")),
        ("transfer/mr.tsv.gz", 10_662, ("text", "label")),
        ("chinese/cstsb.train.tsv.gz", 5_231, ("text", "score", "sentence2")),
    ],
)
def test_tables(name: str, rows: int, columns: tuple[str, ...]) -> None:
    corpus, _ = load(name)
    assert (len(corpus), corpus.names) == (rows, columns)
