"""The parts in a step, against loops over sentences; templates, and what cannot be is refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cse_promptbert.options import TemplateOptions
from cse_promptbert.template import TemplatePooler
from cse_testkit import (
    Rig,
    compose,
    installed_registry,
    make_batch,
    make_context,
    make_part,
    make_setup,
    run_steps,
    shared_encoder,
    tiny_corpus,
)
from torch import Tensor
from torch.nn.functional import cosine_similarity
from transformers import AutoModel

from cse_cli.models.saved_model import load
from cse_core.errors import CseError
from cse_core.reporter import Reporter
from cse_defaults.texts import read_data
from cse_defaults.transformers.encoder import PackedEncoder
from cse_defaults.transformers.pretrained import load_tokenizer
from cse_defaults.transformers.tokenizer import TextTokenizer
from cse_engine.run.prepare import prepare
from cse_engine.run.run import train
from cse_engine.step.sentence_encoder import SentenceEncoder
from tests.fixtures.decoders import make_letters
from tests.fixtures.methods import refusal

FAMILIES: tuple[Any, ...] = ("bert", "roberta", "mpnet")
"""Packed rows of word pieces, of byte-level BPE, and padded rows."""
QUIET = ("model.dropout=0", "train.batch_size=5", "model.max_length=256")


def encoder_of(family: Any = "bert", tokenizer: Any = None, **options: Any) -> SentenceEncoder:
    folder = str(shared_encoder(family=family))
    encoder = PackedEncoder.load(folder, seed=0).eval()
    tokenizer = tokenizer or TextTokenizer(load_tokenizer(folder))
    setup = make_setup("template", dimension=encoder.hidden_size, tokenizer=tokenizer)
    pooler = TemplatePooler(TemplateOptions(**options), setup)
    return SentenceEncoder(encoder, tokenizer, pooler, {}, 64)


def words_of(model: SentenceEncoder, text: str, view: str = "anchor") -> list[str]:
    tokens = model.rows(model.tokenizer.content([text], 512), view)
    return [*model.tokenizer.hf.convert_ids_to_tokens(tokens.ids.tolist())]


def by_hand(rig: Rig, texts: list[str], gap: str) -> dict[str, list[Tensor]]:
    """Return the vector of each sentence in each template, one row at a time by the plain model."""
    model: Any = AutoModel.from_pretrained(shared_encoder(), add_pooling_layer=False).eval()
    tokenizer = load_tokenizer(str(shared_encoder()))
    parts: Any = rig.session.parts
    pooler, dense = parts["pool.template"], parts["transform.template-denoising"].dense
    found: dict[str, list[Tensor]] = {}
    for view in ("anchor", "positive", *(["negative"] if gap == "padding" else [])):
        before, after = pooler.prompt(view)
        for text in texts:
            ids = [
                tokenizer(part, add_special_tokens=False)["input_ids"]
                for part in (before, text, after)
            ]
            ids[0], ids[2] = [tokenizer.cls_token_id, *ids[0]], [*ids[2], tokenizer.sep_token_id]
            row = ids[0] + ids[1] + ids[2]
            assert len(row) <= 256
            states = []
            padding = [tokenizer.pad_token_id] * len(ids[1])
            for content in (ids[1], padding if gap == "padding" else []):
                given = ids[0] + content + ids[2]
                places = [*range(len(ids[0])), *range(len(ids[0]), len(ids[0]) + len(content))]
                places += range(len(row) - len(ids[2]), len(row))
                last = max(i for i, token in enumerate(given) if token == tokenizer.mask_token_id)
                out = model(
                    input_ids=torch.tensor([given]), position_ids=torch.tensor([places]),
                    attention_mask=torch.ones(1, len(given)),
                )  # fmt: skip
                states.append(out[0][0, last])
            vector = torch.tanh(dense.weight @ (states[0] - states[1]) + dense.bias)
            found.setdefault(view, []).append(vector)
    return found


@pytest.mark.parametrize(("recipe", "gap"), [("promptbert", "positions"), ("cot-bert", "padding")])
def test_the_loss_of_a_step_is_that_of_loops_over_sentences(recipe: str, gap: str) -> None:
    corpus = tiny_corpus()
    plan = compose(recipe=recipe, sets=[*QUIET, "train.lr=0"], corpus=corpus)
    rig = Rig(plan)
    rig.step()
    with torch.no_grad():
        found = by_hand(rig, list(corpus.column("text"))[:5], gap)
    total = 0.0
    for i, anchor in enumerate(found["anchor"]):

        def close(one: Tensor, other: Tensor) -> float:
            return float(torch.exp(cosine_similarity(one, other, dim=0) / 0.05))

        others = [j for j in range(5) if j == i or {i, j} != {3, 4}]  # 3 and 4 are one text
        below = sum(close(anchor, found["positive"][j]) for j in others)
        for negative in found.get("negative", []):
            below += close(anchor, negative) + close(found["positive"][i], negative)
        total -= float(np.log(close(anchor, found["positive"][i]) / below)) / 5
    assert rig.losses[0] == pytest.approx(total, rel=2e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_vector_is_the_state_of_the_templates_last_mask(family: str) -> None:
    """Masks of the text are nothing but tokens; views have templates of their own."""
    texts = ["Anna paints the boat", "it is the old [MASK] lamp and <mask> bell", "Boat."]
    two = 'so [MASK] : "[X]" means [MASK] , in short [MASK] .'
    model: Any = encoder_of(family, positive=two, negative="[MASK] says [X]")
    mask = model.tokenizer.hf.mask_token_id
    for view, masks, place in (("anchor", 1, -3), ("positive", 3, -3), ("negative", 1, 1)):
        tokens = model.rows(model.tokenizer.content(texts, 512), view)
        own = [
            [i for i in range(int(start), int(stop)) if tokens.ids[i] == mask and tokens.special[i]]
            for start, stop in zip(tokens.offsets, tokens.offsets[1:], strict=False)
        ]
        assert [len(row) for row in own] == [masks] * 3
        last = [row[-1] for row in own]
        assert model.pooler.reads(tokens).tolist() == last
        ends = (tokens.offsets[1:] if place < 0 else tokens.offsets[:-1]) + place
        assert ends.tolist() == last
        with torch.no_grad():
            words = model.encoder.word_embeddings(tokens.ids)
            hidden = model.encoder(words, tokens.positions, tokens.offsets)
            alone = model.embed(tokens, torch.device("cpu"), 3)["sentence"].vectors
        assert torch.equal(model.pooler.pool(hidden, tokens), hidden.last[last])
        torch.testing.assert_close(alone, hidden.last[last], rtol=1e-5, atol=1e-5)
    broken = tokens.ids.clone()
    broken[last[1]] = 5  # a branch with another vocabulary
    vectors = model.pooler.pool(hidden, replace(tokens, ids=broken))
    assert vectors.isnan().all(dim=1).tolist() == [False, True, False]
    prompt = encoder_of(family, positive=two).pooler.prompt
    assert prompt("negative") == prompt("positive") != prompt("queue") == prompt("anchor")


def test_texts_are_read_as_the_published_evaluation_reads_them() -> None:
    """A full stop after a bare text, the first word with its space; in training neither."""
    bytes_ = TextTokenizer(make_letters())
    given = {"A boat": "ĠAĠboat.", "It's": "ĠIt's.", "ö?": "ĠÃ¶?", "a 'b'": "ĠaĠ'b'", "": ""}
    for leading_space, full_stop in ((True, True), (False, True), (True, False), (False, False)):
        options: Any = {"leading_space": leading_space, "full_stop": full_stop}
        pooler: Any = encoder_of("roberta", bytes_, **options).pooler
        for text, wanted in given.items():
            wanted = wanted.removesuffix("." if not full_stop and text[-1:] != "." else "\n")
            wanted = wanted if leading_space else wanted[1:]
            content = bytes_.content([text, "and", text])
            for training in (False, True):
                pooler.train(training)
                read = pooler.content(content)
                ids = read.ids[: int(read.offsets[1])].tolist()
                plain = "".join(bytes_.hf.convert_ids_to_tokens(bytes_.prompt_ids(text)))
                shown = "".join(bytes_.hf.convert_ids_to_tokens(ids))
                assert shown == (plain if training else wanted), (text, options)
                assert read.rows == 3 and int(read.source.max()) == int(content.source.max())
    model: Any = encoder_of()
    for text, marked in (("the lamp", True), ("the lamp.", False), ("a)", True)):
        before, after = map(model.tokenizer.hf.tokenize, model.pooler.prompt("anchor"))
        plain = model.tokenizer.hf.tokenize(text) + ["."] * marked  # word pieces know no space
        assert words_of(model, text) == ["[CLS]", *before, *plain, *after, "[SEP]"]
    # Of the slices of a text the first has the space, the last the stop.
    content = bytes_.content(["ab", "cd", "ab"])
    slices = replace(content, owner=torch.tensor([0, 0, 1]), slot=torch.tensor([0, 1, 0]))
    read = encoder_of("roberta", bytes_).pooler.content(slices)
    shown = "".join(bytes_.hf.convert_ids_to_tokens(read.ids.tolist()))
    assert shown == "Ġabcd.Ġab." and read.lengths.tolist() == [3, 3, 4]


def test_templates_that_cannot_be_are_refused_in_one_line() -> None:
    once = "a template has [X] once, for the text, and [MASK] once or more"
    for wrong in ("no mark", "[X]", "[X] [X] [MASK]"):
        sets = [f"pool.template.anchor={wrong}"]
        line = refusal(compose, kinds={"pool": ["template"]}, sets=sets)
        assert line == f"pool.template.anchor: {once} (got {wrong!r})"
    tokenizer = TextTokenizer(load_tokenizer(str(shared_encoder())))
    tokenizer.hf.mask_token = None
    with pytest.raises(CseError, match="mask token"):
        TemplatePooler(TemplateOptions(), make_setup("template", tokenizer=tokenizer))
    with pytest.raises(CseError, match=r"model\.max_length.*nothing is left for the text"):
        run_steps(sets=["model.max_length=9"], recipe="promptbert", steps=1)


def test_views_of_templates_have_column_and_branch_of_their_view() -> None:
    corpus = tiny_corpus(columns=("text", "positive"))
    made = compose(recipe="promptbert", sets=["views.positive.column=positive"], corpus=corpus)
    (only,) = made.of("aug")
    assert only.options.columns == ("text", "positive")  # type: ignore[attr-defined]
    roles = {view.name: view.role for view in made.views}
    assert roles["anchor-template"] == roles["positive-template"] == "aux"
    wrong: tuple[tuple[str, list[str], str], ...] = (
        ("promptbert", ["aug.template-only.views=[negative-template]"], "template of no view here"),
        ("promptbert", ["aug.template-only.columns=[text]"], "1 columns for 2 views"),
        ("cot-bert", ["views.positive.branch=ema"], "--set views.positive-template.branch=ema"),
        ("cot-bert", ["aug.template-only.views=[anchor-template]"], "needs the view"),
    )
    for recipe, sets, said in wrong:
        with pytest.raises(CseError) as caught:
            compose(recipe=recipe, sets=sets)
        assert said in str(caught.value)
    kinds: Any = {"transform": ["+template-denoising"]}
    with pytest.raises(CseError, match=r"--aug \+template-only"):
        compose(kinds=kinds, recipe="simcse")
    queued = compose(kinds={"negatives": ["+queue"]}, recipe="promptbert")
    assert any("without template denoising" in line for line in queued.warnings)


def test_the_subtracted_template_is_that_of_the_row() -> None:
    """Joined by key, not by place; without gradient where it is frozen; other views are kept."""
    draws = torch.randn(5, 4, 8, dtype=torch.float64).unbind()
    names = ("anchor", "positive", "soft_negative", "anchor-template", "positive-template")
    given = {name: rows.requires_grad_() for name, rows in zip(names, draws, strict=True)}
    batch = make_batch(given, views=dict.fromkeys(names[1:], "aux"))
    views = {name: batch.views[name]["sentence"] for name in names}
    shuffled = {
        **views,
        "anchor-template": views["anchor-template"].take(torch.tensor([2, 0, 3, 1])),
    }
    for frozen in (False, True):
        options: Any = {"projection": "none", "frozen": frozen}
        part = make_part("transform", "template-denoising", **options)
        after = part(shuffled, make_context())
        wanted = given["anchor"] - given["anchor-template"]
        assert torch.equal(after["anchor"].vectors, wanted)
        assert torch.equal(after["soft_negative"].vectors, given["soft_negative"])
        after["anchor"].vectors.sum().backward()
        assert (given["anchor-template"].grad is None) == frozen
        given["anchor-template"].grad = None
    short = {**views, "anchor-template": views["anchor-template"].take(torch.tensor([0, 1, 3]))}
    after = part(short, make_context())["anchor"].vectors
    assert after.isnan().all(dim=1).tolist() == [False, False, True, False]


def test_a_trained_model_encodes_without_denoising(tmp_path: Path) -> None:
    """The state of the mask in the template of anchors; the card says why no other tool does it."""
    sets = ["train.max_steps=2", "inference.pool=template", "model.max_length=64"]
    composition = compose(recipe="promptbert", sets=sets)
    made = prepare(composition, installed_registry(), reporter=Reporter(), read_texts=read_data)
    train(made, tmp_path / "run")
    model = load(str(tmp_path / "run"), installed_registry())
    assert model.description == "pooling template", "no dense layer"
    hf = model.sentence_encoder.tokenizer.hf
    inner = AutoModel.from_pretrained(tmp_path / "run/model").eval()
    for text, row in (("the lamp", "the lamp."), ("What?", "What?")):
        ids = hf(f'This sentence of "{row}" means[MASK].', return_tensors="pt")["input_ids"]
        with torch.no_grad():
            states = inner(input_ids=ids)[0][0]
        wanted = states[ids[0] == hf.mask_token_id]
        np.testing.assert_allclose(model.encode([text]), wanted.numpy(), rtol=1e-4, atol=1e-5)
    assert "texts are put into the prompt" in (tmp_path / "run/model/README.md").read_text("utf-8")
