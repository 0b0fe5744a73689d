"""Texts cut into texts of so many tokens."""

from __future__ import annotations

import pytest
from cse_testkit import shared_encoder, tiny_corpus

from cse_core.data import Corpus
from cse_core.encoders.pretrained import load_tokenizer
from cse_core.errors import CseError
from cse_core.tokenization.tokenizer import TextTokenizer
from cse_core.tokenization.training_rows import split_texts


@pytest.fixture(scope="module")
def tokenizer() -> TextTokenizer:
    return TextTokenizer(load_tokenizer(shared_encoder()))


def test_pieces_have_so_many_tokens_and_lose_nothing(tokenizer: TextTokenizer) -> None:
    corpus = tiny_corpus(columns=("document", "title", "positive"))
    cut = split_texts(corpus, tokenizer, 5)
    lengths = tokenizer.content(cut.column("text")[:]).lengths
    assert int(lengths.max()) == 5 and int(lengths.min()) >= 1
    assert len(cut) > len(corpus) and cut.names == ("text", "document", "title")
    whole = "".join(corpus.column("text")[:]).replace(" ", "")
    assert "".join(cut.column("text")[:]).replace(" ", "") == whole


def test_pieces_keep_document_and_title(tokenizer: TextTokenizer) -> None:
    texts = ["boat boat boat boat boat", "boat", "boat boat boat"]
    corpus = Corpus.from_columns({"text": texts, "document": list("aba"), "title": list("xyz")})
    cut = split_texts(corpus, tokenizer, 2)
    assert cut.column("text")[:] == ["boat boat", "boat boat", "boat", "boat", "boat boat", "boat"]
    assert cut.column("title")[:] == list("xxxyzz")
    assert cut.documents is not None and cut.documents.tolist() == [0, 0, 0, 1, 0, 0]
    assert cut.report.messages[-1] == "3 texts cut into 6 of at most 2 tokens"
    assert cut.fingerprint != corpus.fingerprint
    assert cut.fingerprint == split_texts(corpus, tokenizer, 2).fingerprint


def test_a_text_without_a_token_stays(tokenizer: TextTokenizer) -> None:
    corpus = Corpus.from_columns({"text": ["\u200b", "boat"]})
    assert split_texts(corpus, tokenizer, 2).column("text")[:] == ["\u200b", "boat"]


def test_other_columns_cannot_be_cut(tokenizer: TextTokenizer) -> None:
    corpus = tiny_corpus(columns=("positive",))
    with pytest.raises(CseError) as caught:
        split_texts(corpus, tokenizer, 5, ("positive",))
    assert "data.split_tokens" in str(caught.value) and "positive" in str(caught.value)
