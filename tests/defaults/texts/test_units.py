"""Articles and documents as sentences, paragraphs or documents."""

import json
from pathlib import Path
from typing import Literal

import pytest

from cse_core.texts import DataOptions
from cse_defaults.texts import Corpus, load_corpus

Unit = Literal["sentence", "paragraph", "document"]
SECTIONS = {
    "id": "7",
    "title": "Bees",
    "sections": [["", ["Bees fly.", " They hum. "]], ["Empty", []], ["Hive", ["It is warm."]]],
}
PARAS = {
    "id": "news/1",
    "label": "news",
    "title": "Rain",
    "paras": [["It rains.", ""], ["It stopped.", "The sun came."]],
}


def load(*paths: Path, unit: Unit = "sentence", limit: int | None = None) -> Corpus:
    options = DataOptions(path=tuple(map(str, paths)), unit=unit, limit=limit)
    return load_corpus(options)


@pytest.fixture
def articles(tmp_path: Path) -> Path:
    path = tmp_path / "articles.jsonl"
    path.write_text(f"{json.dumps(SECTIONS)}\n\n{json.dumps(PARAS)}\n")
    return path


def test_units_and_limit(articles: Path) -> None:
    corpus = load(articles)
    assert list(corpus.column("text")) == [
        *("Bees fly.", "They hum.", "It is warm."),
        *("It rains.", "It stopped.", "The sun came."),
    ]
    assert corpus.documents is not None
    assert corpus.documents.tolist() == [0, 0, 0, 1, 1, 1]
    assert list(corpus.column("document")) == ["7"] * 3 + ["news/1"] * 3
    assert list(corpus.column("title")) == ["Bees"] * 3 + ["Rain"] * 3
    assert corpus.report.blank_dropped == 1
    assert corpus.report.messages == (f"{articles}: 1 blank row dropped",)
    corpus = load(articles, unit="paragraph")
    assert list(corpus.column("text")) == [
        *("Bees fly. They hum.", "It is warm."),
        *("It rains.", "It stopped. The sun came."),
    ]
    assert corpus.documents is not None and corpus.documents.tolist() == [0, 0, 1, 1]
    corpus = load(articles, unit="document")
    assert list(corpus.column("text")) == [
        "Bees fly. They hum. It is warm.",
        "It rains. It stopped. The sun came.",
    ]
    assert corpus.documents is not None and corpus.documents.tolist() == [0, 1]
    assert list(load(articles, limit=4).column("text"))[-1] == "It rains."
    assert len(load(articles, unit="document", limit=1)) == 1


def test_documents_of_files(articles: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.jsonl"
    again.write_bytes(articles.read_bytes())
    plain = tmp_path / "plain.txt"
    plain.write_text("of no document\n")
    corpus = load(articles, plain, again)
    assert corpus.documents is not None
    assert corpus.documents.tolist() == [0, 0, 0, 1, 1, 1, -1, 2, 2, 2, 3, 3, 3]
    flat = tmp_path / "flat.tsv"
    flat.write_text("text\tdocument\na1\ta\nb1\tb\na2\ta\nalone\t\n")
    for unit in ("paragraph", "document"):
        corpus = load(flat, unit=unit)
        assert list(corpus.column("text")) == ["a1", "b1", "a2", "alone"]
        assert any(f"it marks no {unit}s" in message for message in corpus.report.messages)
        assert corpus.documents is not None and corpus.documents.tolist() == [0, 1, 0, -1]
    path = tmp_path / "a.jsonl"
    path.write_text('{"paras": [["a", "b"]]}\n{"paras": [["c"]]}\n')
    corpus = load(path)
    assert corpus.documents is not None and corpus.documents.tolist() == [0, 0, 1]
    elsewhere = tmp_path / "elsewhere.jsonl"
    elsewhere.write_bytes(path.read_bytes())
    assert load(elsewhere).fingerprint == corpus.fingerprint
