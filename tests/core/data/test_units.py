"""Articles and documents as sentences, paragraphs or documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import pytest

from cse_core.data import Corpus, load_corpus, peek_columns
from cse_core.recipes.settings import DataOptions
from tests.fixtures.parts import made_up_registry

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
    corpus = load_corpus(options)
    assert peek_columns(options) == corpus.names
    return corpus


@pytest.fixture
def articles(tmp_path: Path) -> Path:
    path = tmp_path / "articles.jsonl"
    path.write_text(f"{json.dumps(SECTIONS)}\n\n{json.dumps(PARAS)}\n")
    return path


def test_sentences(articles: Path) -> None:
    corpus = load(articles)
    assert list(corpus.column("text")) == [
        *("Bees fly.", "They hum.", "It is warm."),
        *("It rains.", "It stopped.", "The sun came."),
    ]
    assert corpus.documents is not None
    assert corpus.documents.tolist() == [0, 0, 0, 1, 1, 1]
    assert list(corpus.column("document")) == ["7"] * 3 + ["news/1"] * 3
    assert list(corpus.column("title")) == ["Bees"] * 3 + ["Rain"] * 3
    assert corpus.report.blank_dropped == 2
    assert corpus.report.messages == (f"{articles}: 2 blank lines dropped",)


def test_paragraphs_and_documents(articles: Path) -> None:
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


def test_limit(articles: Path) -> None:
    assert list(load(articles, limit=4).column("text"))[-1] == "It rains."
    assert len(load(articles, unit="document", limit=1)) == 1


def test_the_same_id_in_two_files(articles: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.jsonl"
    again.write_bytes(articles.read_bytes())
    plain = tmp_path / "plain.txt"
    plain.write_text("of no document\n")
    corpus = load(articles, plain, again)
    assert corpus.documents is not None
    assert corpus.documents.tolist() == [0, 0, 0, 1, 1, 1, -1, 2, 2, 2, 3, 3, 3]


def test_flat_rows_are_joined_to_documents_and_have_no_paragraphs(tmp_path: Path) -> None:
    flat = tmp_path / "flat.tsv"
    rows = [
        *("text\tfraternal\tpositive\tdocument\ttitle\ttopic\tplace", "a1\tA1\tp\ta\tA\tx\t1"),
        *("b1\tB1\tp\tb\tB\ty\t1", "a2\tA2\tp\ta\tA\tx\t2", "alone\tAlone\tp\t\t\tz\t1"),
    ]
    flat.write_text("\n".join(rows))
    options = DataOptions(path=(str(flat),), unit="document")
    corpus = load_corpus(options, made_up_registry())
    assert corpus.table.to_pydict() == {
        "text": ["a1 a2", "b1", "alone"],
        "fraternal": ["A1 A2", "B1", "Alone"],
        "document": ["a", "b", ""],
        "title": ["A", "B", ""],
        "topic": ["x", "y", "z"],
    }
    assert corpus.documents is not None and corpus.documents.tolist() == [0, 1, -1]
    assert any("positive, place" in message for message in corpus.report.messages)
    limited = load_corpus(options.model_copy(update={"limit": 1}))
    assert list(limited.column("text")) == ["a1 a2"]
    corpus = load(flat, unit="paragraph")
    assert list(corpus.column("text")) == ["a1", "b1", "a2", "alone"]
    assert any("it marks no paragraphs" in message for message in corpus.report.messages)
    assert corpus.documents is not None and corpus.documents.tolist() == [0, 1, 0, -1]


def test_an_article_without_id(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"paras": [["a", "b"]]}\n{"paras": [["c"]]}\n')
    corpus = load(path)
    assert corpus.documents is not None and corpus.documents.tolist() == [0, 0, 1]
    elsewhere = tmp_path / "elsewhere.jsonl"
    elsewhere.write_bytes(path.read_bytes())
    assert load(elsewhere).fingerprint == corpus.fingerprint
