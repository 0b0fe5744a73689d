"""Real files at their real size; skipped where they are absent."""

from __future__ import annotations

from cse_cli.plugins.installed import Installed
from cse_core.data import Corpus, load_corpus
from cse_core.recipes.settings import DataOptions
from tests.shared import shared_path


def load(name: str, unit: str = "sentence") -> Corpus:
    options = DataOptions.model_validate(
        {"path": (str(shared_path(f"data/{name}")),), "unit": unit}
    )
    return load_corpus(options, Installed().registry)


def test_stories() -> None:
    corpus = load("docs/bbc_news.jsonl.gz", "document")
    assert len(corpus) == 2_103
    assert set(corpus.column("label")) == {"business", "entertainment", "politics", "sport", "tech"}


def test_parallel() -> None:
    corpus = load("parallel/multi30k.train.en-de.tsv.gz")
    assert len(corpus) == 28_678
    assert corpus.names == ("text", "fraternal")
    assert corpus.column("fraternal")[0].startswith("Zwei junge weiße Männer")


def test_tables() -> None:
    for name, rows, columns in (
        ("sts/stsb.train.tsv.gz", 5_749, ("text", "subset", "score", "sentence2")),
        ("sts/sickr.train.tsv.gz", 4_500, ("text", "entailment", "score", "sentence2")),
        ("transfer/trec.train.tsv.gz", 5_452, ("text", "label", "fine_label")),
        ("transfer/mr.tsv.gz", 10_662, ("text", "label")),
        ("chinese/cstsb.train.tsv.gz", 5_231, ("text", "score", "sentence2")),
    ):
        corpus = load(name)
        assert (len(corpus), corpus.names) == (rows, columns), name
