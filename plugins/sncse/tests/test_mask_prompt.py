"""The pooler: prompts, the mask's place, full stops, and what the saved model does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cse_sncse.mask_prompt import MaskPrompt
from cse_sncse.options import MaskPromptOptions
from cse_testkit import (
    compose,
    installed_registry,
    make_setup,
    run_steps,
    shared_encoder,
    tiny_corpus,
    write_corpus,
)
from pydantic import ValidationError
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from cse_cli.models.saved_model import load
from cse_core.encoders.encoder import PackedEncoder
from cse_core.encoders.pretrained import load_tokenizer
from cse_core.errors import CseError
from cse_core.models.sentence_encoder import SentenceEncoder
from cse_core.runtime.reporter import Reporter
from cse_core.tokenization.tokenizer import TextTokenizer
from cse_core.training.run import train
from cse_core.types import Hidden, TokenBatch

FAMILIES = ("bert", "roberta", "electra", "distilbert")
TEXTS = ["Anna paints the boat.", "Boat", "it is the old [MASK] lamp and <mask> bell", "What?"]


def encoder_of(family: str = "bert", max_length: int = 64, **options: Any) -> SentenceEncoder:
    folder = shared_encoder(family=family)  # type: ignore[arg-type]
    encoder = PackedEncoder.load(str(folder), seed=0).eval()
    tokenizer = TextTokenizer(load_tokenizer(str(folder)))
    setup = make_setup("mask-prompt", dimension=encoder.hidden_size, tokenizer=tokenizer)
    pooler = MaskPrompt(MaskPromptOptions(**options), setup)
    return SentenceEncoder(encoder, tokenizer, pooler, {}, max_length)


def rows_of(
    sentence_encoder: SentenceEncoder, texts: list[str], role: str = "anchor"
) -> TokenBatch:
    return sentence_encoder.rows(sentence_encoder.tokenizer.content(texts, 512), role)  # type: ignore[arg-type]


def words_of(sentence_encoder: SentenceEncoder, tokens: TokenBatch, row: int) -> list[str]:
    start, stop = int(tokens.offsets[row]), int(tokens.offsets[row + 1])
    return sentence_encoder.tokenizer.hf.convert_ids_to_tokens(tokens.ids[start:stop].tolist())


# -- the space in front of the text --------------------------------------------------------------


def byte_level() -> TextTokenizer:
    """Return a byte-level vocabulary as RoBERTa's, of letters alone."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE({letter: i for i, letter in enumerate(letters)}, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    return TextTokenizer(PreTrainedTokenizerFast(tokenizer_object=made, mask_token="<mask>"))


@pytest.mark.parametrize(("leading_space", "joined"), [(True, '"ĠAĠboat'), (False, '"AĠboat')])
def test_the_space_in_front_of_the_text(leading_space: bool, joined: str) -> None:
    """The public code tokenises ``This sentence : " `` with its last space, then the text."""
    tokenizer = byte_level()
    setup = make_setup("mask-prompt", tokenizer=tokenizer)
    pooler = MaskPrompt(MaskPromptOptions(leading_space=leading_space), setup)
    for role in ("anchor", "positive"):
        before, after = (tokenizer.prompt_ids(part) for part in pooler.prompt(role))  # type: ignore[arg-type]
        content = tokenizer.prompt_ids("A boat")
        words = tokenizer.hf.convert_ids_to_tokens([*before, *content, *after])
        assert joined in "".join(words)
        assert "".join(words).endswith('boatĠ"Ġmeans<mask>Ġ.')


def test_word_pieces_know_no_space() -> None:
    with_space, without = (
        rows_of(encoder_of(leading_space=space), TEXTS).ids for space in (True, False)
    )
    assert torch.equal(with_space, without)


# -- the mask's place -------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_the_vector_is_the_state_of_the_prompts_own_mask(family: str) -> None:
    sentence_encoder = encoder_of(family)
    mask = sentence_encoder.tokenizer.hf.mask_token_id
    for role in ("anchor", "positive", "soft_negative"):
        tokens = rows_of(sentence_encoder, TEXTS, role)
        assert int((tokens.ids == mask).sum()) == len(TEXTS) + 1, "one text has a mask of its own"
        with torch.no_grad():
            hidden = sentence_encoder.encoder(
                sentence_encoder.encoder.word_embeddings(tokens.ids),
                tokens.positions,
                tokens.offsets,
            )
            vectors = sentence_encoder.pooler.pool(hidden, tokens)
        for row in range(len(TEXTS)):
            start, stop = int(tokens.offsets[row]), int(tokens.offsets[row + 1])
            own = [
                place
                for place in range(start, stop)
                if int(tokens.ids[place]) == mask and bool(tokens.special[place])
            ]
            assert len(own) == 1 and int(tokens.source[own[0]]) == -1
            assert torch.equal(vectors[row], hidden.last[own[0]])


@pytest.mark.parametrize("family", FAMILIES)
def test_only_the_last_layer_of_the_mask_is_run(family: str) -> None:
    """``embed`` reads one token a row, and gives the same."""
    sentence_encoder = encoder_of(family)
    tokens = rows_of(sentence_encoder, TEXTS)
    with torch.no_grad():
        hidden = sentence_encoder.encoder(
            sentence_encoder.encoder.word_embeddings(tokens.ids), tokens.positions, tokens.offsets
        )
        whole = sentence_encoder.pooler.pool(hidden, tokens)
        levels = sentence_encoder.embed(tokens, torch.device("cpu"), tokens.rows)
        alone = levels["sentence"].vectors
    assert torch.allclose(whole, alone, atol=1e-5)


def test_a_mask_before_the_text_is_counted_from_the_front() -> None:
    front = {"anchor": "[MASK] says: [X]", "positive": "[MASK] says of [X] .", "full_stop": False}
    sentence_encoder = encoder_of(**front)
    for role in ("anchor", "positive"):
        tokens = rows_of(sentence_encoder, TEXTS, role)
        assert sentence_encoder.pooler.reads(tokens).tolist() == (tokens.offsets[:-1] + 1).tolist()  # type: ignore[union-attr]


def test_a_row_without_its_mask_is_no_number() -> None:
    """A branch with another vocabulary has another token there: it is noticed, not used."""
    sentence_encoder = encoder_of()
    tokens = rows_of(sentence_encoder, TEXTS)
    broken = tokens.ids.clone()
    broken[sentence_encoder.pooler.reads(tokens)[1]] = 5  # type: ignore[index]
    vectors = sentence_encoder.pooler.pool(
        Hidden(torch.ones(len(broken), 32)), replace(tokens, ids=broken)
    )
    assert vectors.isnan().all(dim=1).tolist() == [False, True, False, False]


# -- prompts ----------------------------------------------------------------------------------


def test_the_prompts_of_the_paper() -> None:
    sentence_encoder = encoder_of(full_stop=False)
    plain = sentence_encoder.tokenizer.hf.tokenize("the lamp")
    anchor, positive, soft = (
        words_of(sentence_encoder, rows_of(sentence_encoder, ["the lamp"], role), 0)
        for role in ("anchor", "positive", "soft_negative")
    )
    before = sentence_encoder.tokenizer.hf.tokenize('This sentence : "')
    after = sentence_encoder.tokenizer.hf.tokenize('" means') + ["[MASK]", "."]
    assert anchor == ["[CLS]", *before, *plain, *after, "[SEP]"]
    before = sentence_encoder.tokenizer.hf.tokenize('This sentence of "')
    assert positive == ["[CLS]", *before, *plain, *after, "[SEP]"] and soft == positive


def test_the_prompts_are_options() -> None:
    sentence_encoder = encoder_of(soft_negative='A denial " [X] " means [MASK] !')
    words = words_of(sentence_encoder, rows_of(sentence_encoder, ["the lamp"], "soft_negative"), 0)
    assert words[-3:] == ["[MASK]", "!", "[SEP]"]
    assert sentence_encoder.pooler.prompt("negative") == sentence_encoder.pooler.prompt("positive")
    assert sentence_encoder.pooler.prompt("identical") == sentence_encoder.pooler.prompt("anchor")
    # What a part encodes beside the pair, such as a queue's plain sentences.
    assert sentence_encoder.pooler.prompt("aux") == sentence_encoder.pooler.prompt("anchor")


@pytest.mark.parametrize("length", [40, 48, 64])
def test_the_text_is_cut_and_never_the_prompt(length: int) -> None:
    sentence_encoder = encoder_of(max_length=length)
    short, long = rows_of(sentence_encoder, ["a"]), rows_of(sentence_encoder, ["the old " * 300])
    assert int(long.lengths[0]) == length
    assert words_of(sentence_encoder, long, 0)[-5:] == words_of(sentence_encoder, short, 0)[-5:]
    assert long.special.sum() == short.special.sum()


def test_a_length_without_room_for_a_text_is_one_line() -> None:
    with pytest.raises(CseError) as caught:
        rows_of(encoder_of(max_length=10), ["a"])
    assert "model.max_length" in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("prompt", "mark"),
    [
        ("no mark", "[X] once, for the text"),
        ("[X] [X] [MASK]", "[X] once, for the text"),
        ("[X] [MASK] [MASK]", "[MASK] once, for the mask token"),
        ("[X]", "[MASK] once, for the mask token"),
        ("[MASK]", "[X] once, for the text"),
    ],
)
def test_a_prompt_without_its_marks_is_refused(prompt: str, mark: str) -> None:
    with pytest.raises(ValidationError):
        MaskPromptOptions(anchor=prompt)
    with pytest.raises(CseError) as caught:
        compose(kinds={"pool": ["mask-prompt"]}, sets=[f"pool.mask-prompt.anchor={prompt}"])
    line = str(caught.value)
    assert line == f"pool.mask-prompt.anchor: a prompt has {mark} (got {prompt!r})", line


@pytest.mark.parametrize("prompt", ["[X] means [MASK]", "[MASK] [X]", '[X] , "a" , [MASK]'])
def test_a_prompt_in_brackets_is_typed_as_it_is(prompt: str) -> None:
    made = compose(kinds={"pool": ["mask-prompt"]}, sets=[f"pool.mask-prompt.anchor={prompt}"])
    (pooler,) = made.of("pool")
    assert pooler.options.anchor == prompt  # type: ignore[attr-defined]


def test_prompts_with_the_mask_at_different_places_are_refused() -> None:
    with pytest.raises(CseError) as caught:
        encoder_of(positive="The text [X] means [MASK]")
    line = str(caught.value)
    assert "pool.mask-prompt.positive" in line and "\n" not in line


def test_a_vocabulary_without_a_mask_is_refused() -> None:
    tokenizer = TextTokenizer(load_tokenizer(str(shared_encoder())))
    tokenizer.hf.mask_token = None
    with pytest.raises(CseError) as caught:
        MaskPrompt(MaskPromptOptions(), make_setup("mask-prompt", tokenizer=tokenizer))
    assert "mask token" in str(caught.value)


# -- full stops ---------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_a_text_without_a_final_mark_gets_a_full_stop(family: str) -> None:
    """Exactly the rows of texts to which the stop was written by hand."""
    texts = ["Anna paints the boat", "Boat", "Is it?", "a red, old", "red;", "the 'bell'", "ö"]
    written = [text if text[-1] in "?;'" else f"{text} ." for text in texts]
    for content in (texts, texts[:1], texts[2:3]):
        with_stop = rows_of(encoder_of(family), content)
        wanted = rows_of(
            encoder_of(family, full_stop=False), [written[texts.index(text)] for text in content]
        )
        for name in ("ids", "positions", "source", "word", "special", "offsets", "owner", "slot"):
            assert torch.equal(getattr(with_stop, name), getattr(wanted, name)), name


def test_an_empty_text_gets_none() -> None:
    sentence_encoder = encoder_of()
    tokens = rows_of(sentence_encoder, ["", "a"])
    assert tokens.content_lengths().tolist() == [0, 2]
    assert rows_of(sentence_encoder, [""]).content_lengths().tolist() == [0]


def test_of_the_slices_of_a_text_the_last_one_gets_it() -> None:
    sentence_encoder = encoder_of()
    content = sentence_encoder.tokenizer.content(["a", "b", "a", "b"], 512)
    slices = replace(content, owner=torch.tensor([0, 0, 1, 2]), slot=torch.tensor([0, 1, 0, 0]))
    lengths = sentence_encoder.pooler.content(slices).lengths - slices.lengths
    assert lengths.tolist() == [0, 1, 1, 1]


def test_without_the_option_nothing_is_added() -> None:
    assert rows_of(encoder_of(full_stop=False), ["a"]).content_lengths().tolist() == [1]


# -- the saved model ----------------------------------------------------------------------------


def test_a_trained_model_is_loaded_with_its_prompt(tmp_path: Path) -> None:
    file = write_corpus(tiny_corpus(), tmp_path / "rows.csv")
    composition = compose(
        recipe="sncse",
        sets=[
            f"data.path=[{file}]",
            "train.max_steps=3",
            "train.batch_size=4",
            "train.device=cpu",
            "model.max_length=64",
            "inference.pool=mask-prompt",
            'pool.mask-prompt.anchor=Here : " [X] " is [MASK] .',
        ],
    )
    train(composition, installed_registry(), out=tmp_path / "run", reporter=Reporter())
    model = load(str(tmp_path / "run"), installed_registry())
    assert model.description == "pooling mask-prompt", "no head"
    assert model.sentence_encoder.pooler.prompt("anchor") == ('Here : " ', ' " is [MASK] .')
    vectors = model.encode(TEXTS)
    assert vectors.shape == (4, 32) and np.isfinite(vectors).all()
    for place, text in enumerate(TEXTS):
        assert np.allclose(model.encode([text])[0], vectors[place], atol=1e-5)
    printed = (tmp_path / "run" / "model" / "README.md").read_text(encoding="utf-8")
    assert "sentence-transformers cannot express this model" in printed
    assert 'Here : " X " is [MASK] .' in printed and "mask-prompt" in printed
    assert not (tmp_path / "run" / "model" / "modules.json").exists()


def test_it_trains_in_both_families_with_masks_in_the_texts() -> None:
    corpus = tiny_corpus()
    plain = corpus.column("text")
    texts = [text + (" [MASK] <mask>" if row % 2 else "") for row, text in enumerate(plain)]
    marked = type(corpus).from_columns({"text": texts})
    for family in ("bert", "roberta"):
        run = run_steps(
            recipe="sncse",
            sets=["train.batch_size=6", "model.max_length=60"],
            encoder=shared_encoder(family=family),  # type: ignore[arg-type]
            corpus=marked,
        )
        assert all(loss == loss and loss > 0 for loss in run.losses)
