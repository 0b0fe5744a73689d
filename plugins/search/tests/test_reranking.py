"""``cse search --rerank``: the order is that of sentence-transformers' CrossEncoder."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from sentence_transformers import CrossEncoder
from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification, BertModel

import cse as api
from cse_core.texts import in_context
from tests.fixtures.command_line import Cse, refused

TEXTS = ["the lamp of the garden is old", "a boat on the cold sea", "the judge rang a bell",
         "a violin plays", "the goal of the dog", "an old planet"]  # fmt: skip


def cross_encoder(folder: Path, encoder: str, *, labels: int = 1, head: bool = True) -> str:
    """Save a cross-encoder with drawn weights and the tokenizer of an encoder."""
    tokenizer = AutoTokenizer.from_pretrained(encoder)
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=64, num_labels=labels,
        initializer_range=0.5,
    )  # fmt: skip
    torch.manual_seed(4)
    made = BertForSequenceClassification(config) if head else BertModel(config)
    made.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def reranker(encoder: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    return cross_encoder(tmp_path_factory.mktemp("cross") / "reranker", encoder)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    lines = [f"{text}\tTitle {n}\n" for n, text in enumerate(TEXTS)]
    (tmp_path / "texts.tsv").write_text("".join(["text\ttitle\n", *lines, "a boat\t\n"]))
    return tmp_path / "texts.tsv"


def by_hand(reranker: str, plain: Any) -> list[tuple[str, float]]:
    hits = plain["results"]
    pairs = [(plain["query"], in_context(h["text"], h["title"], h["headings"])) for h in hits]
    scores = CrossEncoder(reranker, device="cpu").predict(pairs).tolist()
    ordered = sorted(zip(scores, hits, strict=True), key=lambda pair: -pair[0])
    return [(hit["text"], round(score, 6)) for score, hit in ordered]


@pytest.mark.parametrize("index", [False, True])
def test_the_order_is_that_of_the_cross_encoder(
    cse: Cse, tmp_path: Path, table: Path, reranker: str, index: bool
) -> None:
    place = ["--data", str(table)]
    if index:
        place = ["--index", str(tmp_path / "index")]
        assert cse("index", "starter", str(table), "--out", place[1]).code == 0
    asked = ["who rang the bell?", "cold water"]
    words = ("search", "starter", *asked, *place, "--bm25", "0.3", "--json")
    plain = json.loads(cse(*words, "--top", "50").out)["queries"]
    said = cse(*words, "--rerank", reranker, "--top", "3")
    assert said.code == 0, said.err
    found = json.loads(said.out)["queries"]
    orders = []
    for ours, query in zip(found, plain, strict=True):
        right = by_hand(reranker, query)
        orders.append([text for text, _ in right] != [hit["text"] for hit in query["results"]])
        hits = ours["results"]
        assert [hit["text"] for hit in hits] == [text for text, _ in right[:3]]
        scores = [score for _, score in right[:3]]
        assert [hit["rerank"] for hit in hits] == pytest.approx(scores, abs=2e-6)
        assert [hit["rank"] for hit in hits] == [1, 2, 3]
        before = {hit["text"]: hit for hit in query["results"]}
        for hit in hits:
            assert {**hit, "rank": 0} == {**before[hit["text"]], "rank": 0, "rerank": hit["rerank"]}
    assert any(orders)
    data = place[1] if index else [place[1]]
    assert api.load("starter").search(asked, data, top=3, bm25=0.3, rerank=reranker) == found


def test_only_the_first_passages_are_read_again(cse: Cse, table: Path, reranker: str) -> None:
    words = ("search", "starter", "cold water", "--data", str(table), "--json", "--top")
    first = {h["text"] for h in json.loads(cse(*words, "2").out)["queries"][0]["results"]}
    again = ("--rerank", reranker, "--rerank-top", "2")
    found = json.loads(cse(*words, "2", *again).out)["queries"][0]["results"]
    assert {hit["text"] for hit in found} == first
    words = ("search", "starter", "cold water", "--data", str(table), "--top", "2")
    shown = cse(*words, *again).out
    assert "rerank" in shown and shown.index("rerank") < shown.index("cosine")


def test_long_passages_are_cut_at_what_the_model_takes(
    cse: Cse, tmp_path: Path, reranker: str
) -> None:
    path = tmp_path / "long.txt"
    path.write_text(" ".join(TEXTS * 60) + "\n" + TEXTS[0] + "\n")
    words = ("search", "starter", "cold water", "--data", str(path), "--rerank", reranker)
    said = cse(*words, "--json")
    assert said.code == 0, said.err


def test_what_cannot_rerank(
    cse: Cse, tmp_path: Path, table: Path, encoder: str, reranker: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    words = ("search", "starter", "cold water", "--data", str(table))
    for name, said in (
        ("nowhere at all", "--rerank: no such folder"),
        (encoder, "is not a cross-encoder"),
        (cross_encoder(tmp_path / "no-head", encoder, head=False), "is not a cross-encoder"),
        (cross_encoder(tmp_path / "three", encoder, labels=3), "has 3 outputs"),
        ("starter", "is not a cross-encoder"),
    ):
        refused(cse(*words, "--rerank", name), said)
    cut = Path(cross_encoder(tmp_path / "cut", encoder)) / "model.safetensors"
    cut.write_bytes(cut.read_bytes()[:500])
    refused(cse(*words, "--rerank", str(cut.parent)), "--rerank: cannot be loaded")
    refused(cse(*words, "--rerank-top", "9"), "--rerank-top: is for --rerank")
    few = ("--rerank", reranker, "--rerank-top", "2")
    refused(cse(*words, *few), "--rerank-top: must be at least --top")
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    refused(
        cse(*words, "--rerank", reranker),
        "needs sentence-transformers",
        "pip install sentence-transformers",
    )
