"""The pooler: prompts, the mask's place, full stops, and what the saved model does."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cse_sncse.mask_prompt import MaskPrompt
from cse_sncse.options import MaskPromptOptions
from cse_testkit import compose, installed_registry, make_setup, shared_encoder
from sentence_transformers import SentenceTransformer

from cse_cli.models.saved_model import load
from cse_core.errors import CseError
from cse_core.types import TokenBatch
from cse_defaults.transformers.encoder import PackedEncoder
from cse_defaults.transformers.pretrained import load_tokenizer
from cse_defaults.transformers.tokenizer import TextTokenizer
from cse_engine.step.sentence_encoder import SentenceEncoder
from tests.fixtures.decoders import make_letters
from tests.fixtures.methods import finished, refusal

FAMILIES: tuple[Any, ...] = ("bert", "roberta")
"""Word pieces and byte-level BPE."""
TEXTS = ["Anna paints the boat.", "Boat", "it is the old [MASK] lamp and <mask> bell", "What?"]
ROLES: tuple[Any, ...] = ("anchor", "positive", "soft_negative")


def encoder_of(family: Any = "bert", max_length: int = 64, **options: Any) -> SentenceEncoder:
    folder = shared_encoder(family=family)
    encoder = PackedEncoder.load(str(folder), seed=0).eval()
    tokenizer = TextTokenizer(load_tokenizer(str(folder)))
    setup = make_setup("mask-prompt", dimension=encoder.hidden_size, tokenizer=tokenizer)
    pooler = MaskPrompt(MaskPromptOptions(**options), setup)
    return SentenceEncoder(encoder, tokenizer, pooler, {}, max_length)


def rows_of(model: SentenceEncoder, texts: list[str], role: Any = "anchor") -> TokenBatch:
    return model.rows(model.tokenizer.content(texts, 512), role)


def words_of(model: SentenceEncoder, text: str, role: Any = "anchor") -> list[str]:
    return model.tokenizer.hf.convert_ids_to_tokens(rows_of(model, [text], role).ids.tolist())


@pytest.mark.parametrize("family", FAMILIES)
def test_the_vector_is_the_state_of_the_prompts_own_mask(family: str) -> None:
    """Whole or with the last layer of the mask alone; masks in a text are nothing but tokens."""
    model = encoder_of(family)
    mask = model.tokenizer.hf.mask_token_id
    for role in ROLES:
        tokens = rows_of(model, TEXTS, role)
        own = ((tokens.ids == mask) & tokens.special).nonzero().squeeze(1)
        assert len(own) == len(TEXTS) == int((tokens.ids == mask).sum()) - 1
        assert (tokens.source[own] == -1).all()
        with torch.no_grad():
            hidden = model.encoder(
                model.encoder.word_embeddings(tokens.ids), tokens.positions, tokens.offsets
            )
            whole = model.pooler.pool(hidden, tokens)
            alone = model.embed(tokens, torch.device("cpu"), tokens.rows)["sentence"].vectors
        assert torch.equal(whole, hidden.last[own])
        assert torch.allclose(whole, alone, atol=1e-5)
    # A branch with another vocabulary has another token there: its vector is NaN.
    broken = tokens.ids.clone()
    broken[own[1]] = 5
    vectors = model.pooler.pool(hidden, replace(tokens, ids=broken))
    assert vectors.isnan().all(dim=1).tolist() == [False, True, False, False]


def test_a_mask_before_the_text_is_counted_from_the_front() -> None:
    front = {"anchor": "[MASK] says: [X]", "positive": "[MASK] says of [X] .", "full_stop": False}
    model: Any = encoder_of(**front)
    for role in ROLES:
        tokens = rows_of(model, TEXTS, role)
        assert model.pooler.reads(tokens).tolist() == (tokens.offsets[:-1] + 1).tolist()


def test_the_prompts_of_the_paper_and_of_options() -> None:
    model: Any = encoder_of(full_stop=False)
    split = model.tokenizer.hf.tokenize
    for role, before in zip(ROLES, ("sentence : ", "sentence of ", "sentence of "), strict=True):
        words = [*split(f'This {before}"'), *split("the lamp"), *split('" means'), "[MASK]", "."]
        assert words_of(model, "the lamp", role) == ["[CLS]", *words, "[SEP]"]
    model = encoder_of(soft_negative='A denial " [X] " means [MASK] !')
    assert words_of(model, "the lamp", "soft_negative")[-3:] == ["[MASK]", "!", "[SEP]"]
    assert model.pooler.prompt("negative") == model.pooler.prompt("positive")
    # What a part encodes beside the pair, such as a queue's plain sentences.
    for role in ("identical", "aux"):
        assert model.pooler.prompt(role) == model.pooler.prompt("anchor")


def test_the_space_in_front_of_the_text() -> None:
    """The public code tokenises ``This sentence : " `` with its last space, then the text."""
    tokenizer = TextTokenizer(make_letters())
    setup = make_setup("mask-prompt", tokenizer=tokenizer)
    for leading_space, joined in ((True, '"ĠAĠboat'), (False, '"AĠboat')):
        pooler = MaskPrompt(MaskPromptOptions(leading_space=leading_space), setup)
        before, after = (tokenizer.prompt_ids(part) for part in pooler.prompt("positive"))
        ids = [*before, *tokenizer.prompt_ids("A boat"), *after]
        words = "".join(tokenizer.hf.convert_ids_to_tokens(ids))
        assert joined in words and words.endswith('boatĠ"Ġmeans<mask>Ġ.')
    pieces = [rows_of(encoder_of(leading_space=space), TEXTS).ids for space in (True, False)]
    assert torch.equal(*pieces), "word pieces know no space"


def test_the_text_is_cut_and_never_the_prompt() -> None:
    for length in (40, 64):
        model = encoder_of(max_length=length)
        short, long = words_of(model, "a"), words_of(model, "the old " * 300)
        assert len(long) == length and long[-5:] == short[-5:]
    with pytest.raises(CseError, match=r"model\.max_length"):
        rows_of(encoder_of(max_length=10), ["a"])


def test_prompts_that_cannot_be_are_refused_in_one_line() -> None:
    text, mask = "[X] once, for the text", "[MASK] once, for the mask token"
    wrong = {"no mark": text, "[X] [X] [MASK]": text, "[X] [MASK] [MASK]": mask, "[X]": mask}
    for prompt, mark in wrong.items():
        sets = [f"pool.mask-prompt.anchor={prompt}"]
        line = refusal(compose, kinds={"pool": ["mask-prompt"]}, sets=sets)
        assert line == f"pool.mask-prompt.anchor: a prompt has {mark} (got {prompt!r})"
    for prompt in ("[X] means [MASK]", '[X] , "a" , [MASK]'):
        made = compose(kinds={"pool": ["mask-prompt"]}, sets=[f"pool.mask-prompt.anchor={prompt}"])
        assert made.of("pool")[0].options.anchor == prompt  # type: ignore[attr-defined]
    with pytest.raises(CseError, match=r"pool\.mask-prompt\.positive"):
        encoder_of(positive="The text [X] means [MASK]")  # at another place
    tokenizer = TextTokenizer(load_tokenizer(str(shared_encoder())))
    tokenizer.hf.mask_token = None
    with pytest.raises(CseError, match="mask token"):
        MaskPrompt(MaskPromptOptions(), make_setup("mask-prompt", tokenizer=tokenizer))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_text_without_a_final_mark_gets_a_full_stop(family: str) -> None:
    """Exactly the rows of texts to which the stop was written by hand."""
    texts = ["Anna paints the boat", "Boat", "Is it?", "a red, old", "red;", "the 'bell'", "ö", ""]
    written = [text if text[-1:] in {"?", ";", "'", ""} else f"{text} ." for text in texts]
    with_stop, plain = encoder_of(family), encoder_of(family, full_stop=False)
    for rows in (slice(None), slice(1), slice(2, 3)):
        found, wanted = rows_of(with_stop, texts[rows]), rows_of(plain, written[rows])
        for name in ("ids", "positions", "source", "word", "special", "offsets", "owner", "slot"):
            assert torch.equal(getattr(found, name), getattr(wanted, name)), name
    # Of the slices of a text the last one gets it.
    content = with_stop.tokenizer.content(["a", "b", "a", "b"], 512)
    slices = replace(content, owner=torch.tensor([0, 0, 1, 2]), slot=torch.tensor([0, 1, 0, 0]))
    longer = with_stop.pooler.content(slices).lengths > slices.lengths
    assert longer.tolist() == [False, True, True, True]


def test_a_trained_model_is_loaded_with_its_prompt(tmp_path: Path) -> None:
    prompt = 'pool.mask-prompt.anchor=Here : " [X] " is [MASK] .'
    sets = ["train.max_steps=3", "model.max_length=64", "inference.pool=mask-prompt", prompt]
    run = finished(tmp_path, "sncse", *sets)
    model = load(str(run), installed_registry())
    assert model.description == "pooling mask-prompt", "no head"
    assert model.sentence_encoder.pooler.prompt("anchor") == ('Here : " ', ' " is [MASK] .')
    vectors = model.encode(TEXTS)
    assert vectors.shape == (4, 32) and np.isfinite(vectors).all()
    assert np.allclose(model.encode(TEXTS[1:2])[0], vectors[1], atol=1e-5)
    printed = (run / "model" / "README.md").read_text(encoding="utf-8")
    assert "sentence-transformers has no modules for it" in printed
    assert 'Here : " X " is [MASK] .' in printed and "mask-prompt" in printed
    with pytest.raises(ValueError, match="cse.in_sentence_transformers"):
        SentenceTransformer(str(run / "model"), device="cpu")
    theirs = SentenceTransformer(str(run / "model"), device="cpu", trust_remote_code=True)
    assert np.allclose(theirs.encode(TEXTS), vectors, atol=1e-6)
    theirs.save_pretrained(str(tmp_path / "again"))
    again = SentenceTransformer(str(tmp_path / "again"), device="cpu", trust_remote_code=True)
    assert np.allclose(again.encode(TEXTS), vectors, atol=1e-6)
