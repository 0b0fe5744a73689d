"""Titles found from documents: recall against a slow loop, sets of files, dev scores."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cse_evaluation.documents import is_document_file, read_documents
from cse_evaluation.retrieval import (
    DocumentDevSet,
    document_vectors,
    recall_of,
    score_documents,
    score_words,
    titles_before,
)
from cse_evaluation.suites import Retrieval
from cse_testkit.runs import installed_registry

from cse_core.errors import CseError
from cse_engine.compose.settings import TrainOptions
from cse_engine.run.dev_sets import dev_sets
from cse_engine.run.selection import Scorer
from tests.fixtures.command_line import Cse

WORDS = ("boat", "lamp", "clock", "kite", "drum", "bell", "garden", "bridge")


def article(number: int, form: str = "paras") -> dict[str, Any]:
    word = WORDS[number % len(WORDS)]
    sentences = [f"The {word} is number {number} of place {i}." for i in range(1 + number % 3)]
    body: Any = [["", sentences]] if form == "sections" else [sentences[:1], sentences[1:]]
    return {"id": f"d{number}", "title": f"{word} {number}", form: body}


def write(path: Path, records: Sequence[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in records), encoding="utf-8")
    return path


def bag_of_letters(texts: Sequence[str]) -> np.ndarray[Any, Any]:
    codes = [chr(c) for c in (*range(97, 123), *range(48, 58))]
    return np.array([[text.lower().count(c) for c in codes] for text in texts], dtype=np.float32)


def slow_recall(documents: Any, titles: Any, gold: Any, k: int) -> float:
    found = 0
    for row, own in enumerate(gold):
        scores = [float(np.dot(documents[row], title)) for title in titles]
        before = sum(s >= scores[own] for i, s in enumerate(scores) if i != own)
        found += before < k
    return 100 * found / len(gold)


@pytest.mark.parametrize("form", ["paras", "sections"])
def test_both_forms_of_articles_are_read(tmp_path: Path, form: str) -> None:
    records = [article(i, form) for i in range(7)]
    records[3]["title"] = records[2]["title"]
    records.append({"id": "none", "title": " ", form: records[0][form]})
    documents = read_documents(write(tmp_path / "news.jsonl", records))
    assert documents.name == "news.all" and len(documents) == 7
    assert documents.titles == tuple(r["title"] for i, r in enumerate(records[:7]) if i != 3)
    assert documents.gold.tolist() == [0, 1, 2, 2, 3, 4, 5]
    assert documents.untitled == 1
    assert np.diff(documents.offsets).tolist() == [1, 2, 3, 1, 2, 3, 1]


def test_vectors_are_means_whatever_the_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = read_documents(write(tmp_path / "a.jsonl", [article(i) for i in range(40)]))
    whole = document_vectors(bag_of_letters, documents)
    texts = list(documents.sentences)
    for row in range(len(documents)):
        own = documents.rows[documents.offsets[row] : documents.offsets[row + 1]]
        wanted = bag_of_letters([texts[i] for i in own]).mean(axis=0)
        assert np.allclose(whole[row], wanted, atol=1e-6)
    monkeypatch.setattr("cse_evaluation.retrieval._SENTENCES", 5)
    assert np.array_equal(document_vectors(bag_of_letters, documents), whole)


def test_recall_equals_a_loop_whatever_the_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cse_evaluation.retrieval._DOCUMENTS", 7)
    draws = np.random.default_rng(0)
    documents, titles = draws.normal(size=(50, 4)).round(1), draws.normal(size=(30, 4)).round(1)
    titles[5] = titles[6]
    gold = draws.integers(0, 30, size=50)
    wanted = {f"recall@{k}": slow_recall(documents, titles, gold, k) for k in (5, 10, 20)}
    for cells in (2**24, 1, 90):
        monkeypatch.setattr("cse_evaluation.retrieval._CELLS", cells)
        assert recall_of(titles_before(documents, titles, gold)) == wanted


def test_a_collapsed_model_finds_nothing_however_products_round() -> None:
    vector = np.random.default_rng(0).normal(size=(1, 384))
    same = np.repeat(vector / np.linalg.norm(vector), 29, axis=0)
    assert (titles_before(same, same, np.arange(29)) == 28).all()


def test_titles_are_ranked_by_cosine(tmp_path: Path) -> None:
    documents = read_documents(write(tmp_path / "a.jsonl", [article(i) for i in range(40)]))
    found = score_documents(bag_of_letters, documents)
    vectors = document_vectors(bag_of_letters, documents)
    titles = bag_of_letters(documents.titles).astype(np.float64)
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    titles = titles / np.linalg.norm(titles, axis=1, keepdims=True)
    assert found.scores == {
        f"recall@{k}": slow_recall(vectors, titles, documents.gold, k) for k in (5, 10, 20)
    }


def test_ranks_of_the_command(cse: Cse, tmp_path: Path) -> None:
    documents = write(tmp_path / "a.jsonl", [article(i) for i in range(30)])
    out = tmp_path / "items.tsv"
    words = ("eval", "starter", "--documents", str(documents), "--no-baselines")
    said = cse(*words, "--items-out", str(out), "--json")
    assert said.code == 0, said.err
    assert f"are in {out}" in said.err
    head, *lines = (line.split("\t") for line in out.read_text().splitlines())
    assert head == ["set", "item", "rank", "right"]
    assert [line[:2] for line in lines] == [["a.all", str(n)] for n in range(1, 31)]
    assert {line[3] for line in lines} == {""}
    found = json.loads(said.out)["results"]["a.all"]
    assert found["titles"] == 30 and found["setting"].endswith("cosine")
    for k in (5, 10, 20):
        share = sum(int(line[2]) <= k for line in lines) / 30
        assert found[f"recall@{k}"] == pytest.approx(100 * share, abs=1e-4)


def test_words_stand_beside_the_model(tmp_path: Path) -> None:
    documents = read_documents(write(tmp_path / "news.test.jsonl", [article(i) for i in range(40)]))
    words = score_words(documents)
    assert words["lexical"]["units"] == "words"
    said = score_documents(bag_of_letters, documents, words).to_json()
    assert set(said) >= {"recall@5", "recall@10", "recall@20", "documents", "titles", "tfidf"}
    assert said["split"] == "test" and said["documents"] == 40 and said["tfidf"]["recall@5"] == 100


def test_a_folder_is_searched_for_documents_with_titles(tmp_path: Path) -> None:
    suite = Retrieval()
    write(tmp_path / "other.jsonl", [{"label": "1", "text": "no document"}])
    assert not suite.locate(tmp_path).there
    (tmp_path / "docs").mkdir()
    write(tmp_path / "docs" / "b.jsonl", [article(i) for i in range(4)])
    rows = [f"t {i}\tdoc{i // 2}\ttitle {i // 2}" for i in range(6)]
    (tmp_path / "a.tsv").write_text("text\tdocument\ttitle\n" + "\n".join(rows) + "\n")
    read = suite.read(suite.locate(tmp_path).there)
    assert sorted(each.name for each in read) == ["a.all", "b.all"]
    (tmp_path / "aa.parquet").write_bytes(b"no parquet")
    found = suite.locate(tmp_path)
    assert sorted(found.files) == ["a", "b"]
    assert [error.where for error in found.broken] == [str(tmp_path / "aa.parquet")]


def test_files_that_cannot_serve_are_refused(tmp_path: Path) -> None:
    plain = tmp_path / "a.txt"
    plain.write_text("one\ntwo\n")
    with pytest.raises(CseError, match="no documents with titles"):
        read_documents(plain)
    with pytest.raises(CseError, match="fewer than two titles"):
        read_documents(write(tmp_path / "one.jsonl", [article(0)]))
    with pytest.raises(CseError, match="no such file"):
        is_document_file(tmp_path / "missing.jsonl")


def test_documents_choose_the_checkpoint(tmp_path: Path) -> None:
    """``--dev`` takes documents beside pairs; recall@5 is their usual score."""
    documents = write(tmp_path / "news.dev.jsonl", [article(i) for i in range(40)])
    pairs = tmp_path / "sts.tsv"
    pairs.write_text("sentence1\tsentence2\tscore\na b\ta c\t3\na\tz\t0\nb c\tb c\t5\n")
    options = TrainOptions(dev=(str(documents), str(pairs)))
    sets = dev_sets(options, (), installed_registry(), pytest.fail)
    assert isinstance(sets[0], DocumentDevSet) and sets[0].size == 40
    scorer = Scorer(sets, None)
    scores, _ = scorer.score(lambda texts: torch.from_numpy(bag_of_letters(texts)), 1, 0, {})
    assert 0 < scores["news.dev.recall@5"] <= scores["news.dev.recall@20"] <= 100
    assert scores["news.dev.effective_rank"] > 1
    assert Scorer(sets[:1], None).select == "news.dev.recall@5"
    assert Scorer(sets, "news.dev.recall@20").select == "news.dev.recall@20"
    assert Scorer(sets, "sts").select == "sts.spearman"
    assert Scorer(sets, None).select == "mean"
    with pytest.raises(CseError, match="is not a dev score"):
        Scorer(sets, "news.dev.recall@3")
