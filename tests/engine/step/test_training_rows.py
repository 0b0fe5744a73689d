"""The rows of a round: texts cut and tokenised once; the batches of each epoch."""

import numpy as np
import pytest
import torch
from cse_testkit import shared_encoder

from cse_core.errors import CseError
from cse_core.reporter import Reporter
from cse_defaults.texts import Corpus
from cse_defaults.transformers.pretrained import load_tokenizer
from cse_defaults.transformers.tokenizer import TextTokenizer
from cse_engine.runtime.seeds import generator
from cse_engine.step.training_rows import Batches, TrainingRows

TEXTS = ["anna paints", "the old boat", "anna paints", "ben", "the old boat", "a red kite"]


@pytest.fixture(scope="module")
def tokenizer() -> TextTokenizer:
    return TextTokenizer(load_tokenizer(shared_encoder()))


def test_each_text_is_tokenised_once(tokenizer: TextTokenizer, seen: list[list[str]]) -> None:
    rows = TrainingRows(Corpus.from_columns({"text": TEXTS}), 8)
    rows.tokenise("text", tokenizer, Reporter())
    index = torch.tensor([5, 2, 0, 1])
    found = rows.content("text", index, tokenizer)
    assert seen == [["anna paints", "the old boat", "ben", "a red kite"]]
    expected = tokenizer.content([TEXTS[row] for row in index.tolist()], 8)
    for name in ("ids", "word", "offsets", "owner", "source", "positions"):
        assert torch.equal(getattr(found, name), getattr(expected, name)), name


def test_of_very_many_rows_those_of_a_step_are_tokenised(
    tokenizer: TextTokenizer, seen: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first step waits for no table of all texts, and gets the same tokens."""
    corpus, index = Corpus.from_columns({"text": TEXTS}), torch.tensor([5, 2, 0, 1])
    table = TrainingRows(corpus, 2)
    assert table.ahead
    expected = table.content("text", index, tokenizer)
    monkeypatch.setattr("cse_engine.step.training_rows.MOST_AHEAD", len(TEXTS) - 1)
    rows = TrainingRows(corpus, 2)
    assert not rows.ahead
    del seen[:]
    found = rows.content("text", index, tokenizer)
    assert seen == [[TEXTS[row] for row in index.tolist()]]
    for name in ("ids", "word", "offsets", "owner", "source", "positions", "special", "slot"):
        assert torch.equal(getattr(found, name), getattr(expected, name)), name
    one_row = {"text": np.array([4]), "positive": np.array([1])}
    assert not TrainingRows(corpus, 2, one_row, rows, 1).ahead


def test_a_round_of_rows_tokenises_nothing(tokenizer: TextTokenizer, seen: list[list[str]]) -> None:
    corpus = Corpus.from_columns({"text": TEXTS, "title": TEXTS[::-1]})
    base = TrainingRows(corpus, 8)
    for column in ("text", "title"):
        base.tokenise(column, tokenizer, Reporter())
    del seen[:]
    pairs = {"text": np.array([4, 0, 3]), "positive": np.array([1, 2, 5])}
    rows = TrainingRows(corpus, 8, pairs, base, 1)
    assert not np.shares_memory(rows.corpus_row.numpy(), pairs["text"])  # which may be read-only
    index = torch.tensor([2, 0, 1])
    for column in ("text", "positive", "title"):
        found = rows.content(column, index, tokenizer).ids
        assert seen == []
        assert torch.equal(found, tokenizer.content(rows.texts(column, index), 8).ids)
        del seen[:]


def test_a_round_of_its_own_texts(tokenizer: TextTokenizer, seen: list[list[str]]) -> None:
    pairs = {"text": ["ben", "anna", "ben"], "positive": ["a", "b", "c"]}
    rows = TrainingRows(Corpus.from_columns({"text": TEXTS}), 8, pairs, None, 2)
    assert rows.texts("positive", torch.tensor([2, 0])) == ["c", "a"]
    rows.content("text", torch.tensor([2, 1]), tokenizer)
    assert seen == [["ben", "anna"]]
    other = TrainingRows(Corpus.from_columns({"text": TEXTS}), 8, pairs, None, 3)
    assert not {*rows.corpus_row.tolist()} & {*range(len(TEXTS)), *other.corpus_row.tolist()}
    corpus = Corpus.from_columns({"text": TEXTS, "fraternal": TEXTS[::-1]})
    rows = TrainingRows(corpus, 8, pairs, None, 1)
    assert rows.columns == ("text", "positive")
    with pytest.raises(CseError, match="has no column 'fraternal', only text, positive"):
        rows.texts("fraternal", torch.tensor([0]))


def test_batches_are_drawn_anew_each_epoch() -> None:
    batches = Batches(10, 4, seed=3, number=1, shuffle=True)
    assert batches.per_epoch == 3 and [batches.epoch(step) for step in (0, 2, 3)] == [0, 0, 1]
    for epoch in range(2):
        found = torch.cat([batches.at(3 * epoch + place) for place in range(3)])
        draws = generator(torch.device("cpu"), 3, 1, "order", epoch)
        assert torch.equal(found, torch.randperm(10, generator=draws))
        assert [len(batches.at(3 * epoch + place)) for place in range(3)] == [4, 4, 2]
    assert torch.equal(batches.at(1), Batches(10, 4, seed=3, number=1, shuffle=True).at(1))
    in_order = Batches(10, 4, seed=3, number=1, shuffle=False)
    assert in_order.at(5).tolist() == [8, 9]
