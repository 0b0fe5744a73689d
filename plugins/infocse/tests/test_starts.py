"""Weak starts, documents as sentences, labelled pairs."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cse_infocse import span as near_spans
from cse_infocse import starts
from cse_infocse.labels import Labels
from cse_infocse.options import LabelsOptions, SentencesOptions
from cse_infocse.sentences import Sentences
from cse_testkit import make_part, make_setup, tiny_tokenizer
from tokenizers import processors

from cse_core.errors import CseError
from cse_defaults.transformers.tokenizer import TextTokenizer
from cse_engine.compose.settings import TrainOptions
from cse_engine.run.rounds import TrainingRound, round_options
from plugins.infocse.tests.made_up import corpus_of, mined
from tests.fixtures.decoders import make_letters
from tests.fixtures.methods import refusal, round_context
from tests.fixtures.token_rows import spans


def test_neighbours_are_near_and_of_one_document() -> None:
    pairs = mined("neighbour", corpus_of(5, 3, 1), distance=2)
    found = list(zip(pairs["text"].tolist(), pairs["positive"].tolist(), strict=True))
    assert found == [
        (0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (2, 4), (3, 4), (5, 6), (5, 7), (6, 7),
    ]  # fmt: skip


def test_pairs_are_bounded() -> None:
    corpus = corpus_of(30, 30, 30)
    assert len(mined("neighbour", corpus, pairs_per_document=7)["text"]) == 21
    assert len(mined("neighbour", corpus, pairs_per_document=7, pairs=10)["text"]) == 10


def test_a_context_may_be_several_sentences() -> None:
    pairs = mined("preceding-context", corpus_of(4), context="mean")
    assert pairs["positive"][2] == (
        "word0 of sentence 0[SEP]word1 of sentence 1[SEP]word2 of sentence 2"
    )


def test_spans_have_room() -> None:
    """In a document, where one and that beside it take two times the shortest; and in options."""
    assert mined("span", corpus_of(5), shortest=10)["text"]
    with pytest.raises(CseError, match="no document has 20 words"):
        mined("span", corpus_of(4), shortest=10)
    assert mined("span", corpus_of(5), shortest=7, longest=7)["text"]
    with pytest.raises(ValueError, match="shortest must not be above longest: 8 and 7"):
        mined("span", corpus_of(5), shortest=8, longest=7)


@pytest.mark.parametrize("name", ["inverse-cloze", "preceding-context", "span"])
@pytest.mark.parametrize("pairs", [None, 7])
def test_starts_take_the_texts_of_the_chosen_pairs_piece_by_piece(
    monkeypatch: pytest.MonkeyPatch, name: str, pairs: int | None
) -> None:
    """The same pairs, however few are looked at together, and no text that none of them needs."""
    corpus, options = corpus_of(9, 2, 14, 6), {"pairs": pairs, "pairs_per_document": 3}
    whole, printed, most = mined(name, corpus, **options), [], 0
    take = type(corpus.column("text")).take

    def watched(self: Any, rows: Any) -> list[str]:
        nonlocal most
        most = max(most, len(rows))
        return take(self, rows)

    monkeypatch.setattr(starts, "AT_ONCE", 2)
    monkeypatch.setattr(near_spans, "AT_ONCE", 2)
    monkeypatch.setattr(type(corpus.column("text")), "take", watched)
    ctx = replace(round_context(corpus), progress=lambda *each: printed.append(each[:2]))
    pieces = make_part("positives", name, **options).next_round(ctx).pairs
    assert {key: list(values) for key, values in pieces.items()} == {
        key: list(values) for key, values in whole.items()
    }
    assert most <= 14, "one document, or two sentences with four around each"
    assert printed[-1] == (len(whole["text"]),) * 2 and len(printed) > 1


# -- documents as sentences -------------------------------------------------------------------


def test_a_document_is_cut_at_its_separators() -> None:
    pooler = make_part("pool", "sentences", length=5)
    tokenizer = tiny_tokenizer()
    texts = ["the old boat [SEP] red lamp [SEP] the garden is old and red", "boat", "[SEP]",
             "[SEP] lamp [SEP] [SEP] boat [SEP]"]  # fmt: skip
    cut = pooler.slices(tokenizer.content(texts))
    sentences = [
        "the old boat",
        "red lamp",
        "the garden is old and red",
        "boat",
        "",
        "lamp",
        "boat",
    ]
    wanted = [tokenizer.content([sentence]).ids[:3].tolist() for sentence in sentences]
    assert [cut.ids[span].tolist() for span in spans(cut)] == wanted
    assert cut.owner.tolist() == [0, 0, 0, 1, 2, 3, 3]
    assert cut.slot.tolist() == [0, 1, 2, 0, 0, 0, 1]
    assert cut.positions.tolist() == [place for row in wanted for place in range(len(row))]


def test_blanks_are_no_tokens_beside_separators_in_a_byte_level_vocabulary() -> None:
    """A sentence in a document has the tokens that it has alone, as in RoBERTa's vocabulary."""
    fast = make_letters(unk_token="<unk>", pad_token="<pad>", cls_token="<s>", sep_token="</s>")
    fast.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        special_tokens=[(mark, fast.convert_tokens_to_ids(mark)) for mark in ("<s>", "</s>")],
    )
    tokenizer = TextTokenizer(fast)
    setup = make_setup("sentences", tokenizer=tokenizer)
    between = Labels(LabelsOptions(), setup).between
    sentences = ["the old boat", "red lamp", "a garden"]
    cut = Sentences(SentencesOptions(), setup).slices(tokenizer.content([between.join(sentences)]))
    alone = tokenizer.content(sentences)
    assert cut.ids.tolist() == alone.ids.tolist()
    assert cut.offsets.tolist() == alone.offsets.tolist()


# -- labelled pairs --------------------------------------------------------------------------------


def test_titles_and_documents_of_the_data() -> None:
    found = make_part("positives", "labels").next_round(round_context(corpus_of(2, 1)))
    assert found.pairs["text"] == ["title of d0", "title of d1"]
    assert found.pairs["positive"][0] == "word0 of sentence 0[SEP]word1 of sentence 1"
    wanted = {"batch_size": 64, "chunk_size": 8, "epochs": 20.0, "eval_steps": 1}
    assert dict(found.train) == wanted | {"patience": "2 epochs"}


def test_few_labels_are_the_same_in_each_turn(tmp_path: Path) -> None:
    file = tmp_path / "titles.jsonl"
    records = [{"id": i, "title": f"t{i}", "paras": [[f"a{i}.", f"b{i}."]]} for i in range(30)]
    file.write_text("".join(json.dumps(each) + "\n" for each in records))
    part = make_part("positives", "labels", file=str(file), limit=5)
    corpus = corpus_of(2, 2)
    once, again = part.mine_round(round_context(corpus)), part.mine_round(round_context(corpus, 9))
    assert len(once.pairs["text"]) == 5 and once.pairs == again.pairs
    for title, document in zip(*once.pairs.values(), strict=True):
        assert document == f"a{title[1:]}.[SEP]b{title[1:]}."


def test_pairs_of_a_table(tmp_path: Path) -> None:
    file = tmp_path / "pairs.tsv"
    file.write_text("text\tpositive\na b\tb a\nblank\t\nc d\td c\n")
    found = make_part("positives", "labels", file=str(file)).next_round(round_context(corpus_of(2)))
    assert found.pairs == {"text": ["a b", "c d"], "positive": ["b a", "d c"]}


def test_labels_that_are_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CseError, match="no such file"):
        make_part("positives", "labels", file=str(tmp_path / "none.jsonl"))
    plain = tmp_path / "plain.txt"
    plain.write_text("one\ntwo\n")
    with pytest.raises(CseError, match="neither a column positive"):
        make_part("positives", "labels", file=str(plain))


def test_epochs_of_a_round_and_max_steps_of_the_run_both_bound_it() -> None:
    pairs: dict[str, Any] = {"text": ["a"] * 100, "positive": ["b"] * 100}
    for own, most, wanted in (
        ({"batch_size": 10, "epochs": 2}, 200_000, 20),
        ({"batch_size": 10, "epochs": 2}, 7, 7),
        ({"batch_size": 10, "epochs": 2}, None, 20),
        ({"batch_size": 10}, 30, 30),
        ({"batch_size": 10, "epochs": 2, "max_steps": 50}, 30, 50),
    ):
        options = round_options(TrainingRound(pairs, train=own), TrainOptions(max_steps=most))
        assert options.steps(100) == wanted


def test_labels_are_scored_after_each_epoch(tmp_path: Path) -> None:
    file, ctx = tmp_path / "pairs.tsv", round_context(corpus_of(2))
    for pairs, size, wanted in ((65, 64, 2), (64, 64, 1), (7, 2, 4)):
        file.write_text("text\tpositive\n" + "".join(f"a {n}\tb {n}\n" for n in range(pairs)))
        part = make_part("positives", "labels", file=str(file), batch_size=size)
        found = part.mine_round(ctx)
        assert found.train["eval_steps"] == wanted == TrainOptions(batch_size=size).steps(pairs)
        assert "lr" not in found.train and not found.keep_optimizer
    found = make_part("positives", "labels", file=str(file), lr=1e-3).mine_round(ctx)
    assert found.train["lr"] == 1e-3


@pytest.mark.parametrize("name", ["labels", "idc-labels"])
def test_pairs_that_have_changed_since_are_not_mined_again(name: str, tmp_path: Path) -> None:
    file, ctx = tmp_path / "pairs.tsv", round_context(corpus_of(2))
    rows = ["text\tpositive", "a\tone", "b\ttwo", "c\tthree"]
    file.write_text("\n".join(rows))

    def made() -> Any:
        part = make_part("positives", name, file=str(file))
        return part, getattr(part, "labels", part)

    begun, labels = made()
    state = json.loads(json.dumps(begun.state_dict()))
    assert labels.mine_round(ctx).pairs["text"] == ["a", "b", "c"]
    assert begun.state_dict()["digest"] == state["digest"] != ""
    same, labels = made()
    same.load_state_dict(state)
    assert labels.mine_round(ctx).pairs["positive"] == ["one", "two", "three"]
    for changed in (rows[:-1], [*rows[:-1], "c\tfour"], [rows[0], "a\tone", "c\tthree", "b\ttwo"]):
        file.write_text("\n".join(changed))
        other, labels = made()
        other.load_state_dict(state)
        assert other.state_dict() == state, "a written round goes on, and keeps what it knew"
        line = refusal(labels.mine_round, ctx)
        assert line.startswith(f"positives.{name}.file: ")
        assert "have changed since" in line
