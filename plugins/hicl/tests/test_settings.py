"""The paper's variants are settings; long texts; the saved model; parts of other plugins."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from cse_testkit import Rig, compose, installed_registry, run_steps, tiny_corpus, write_corpus

from cse_cli.models.saved_model import load
from cse_cli.training.plan import data_flow
from cse_core.data import Corpus
from cse_core.errors import CseError
from cse_core.records import Kind
from cse_core.reporter import Reporter
from cse_core.training.run import train

SHORT = "pool.segments.length=4"
Kinds = dict[Kind, list[str]]

VARIANTS: dict[str, tuple[Kinds, list[str]]] = {
    "global only": ({"loss": ["~local"]}, ["params.alpha=0"]),
    "local only": ({"loss": ["~global"]}, ["params.alpha=1"]),
    "segments of one text as positives": (
        {"positives": ["+same-sequence"]},
        ["loss.local.target=same-sequence"],
    ),
    "segments of one text as negatives": ({}, ["loss.local.same_sentence=keep"]),
    "negatives of the first view": (
        {},
        ["loss.local.in_batch=anchor", "loss.global.in_batch=anchor"],
    ),
    "averaging": ({"negatives": ["+averaging"]}, []),
    "plain mean": ({}, ["pool.segments.aggregate=mean"]),
    "before the heads": ({}, ["pool.segments.join=before-heads"]),
    "the wrapped text cut": ({}, ["pool.segments.wrap=sentence"]),
    "sliced at inference": ({}, ["inference.slice=true"]),
    "both directions": ({}, ["loss.local.directions=both", "loss.global.directions=both"]),
}


def test_variants_differ_where_they_should() -> None:
    """With one seed and one batch every variant has a loss of its own; inference changes none."""
    first = {}
    for variant, (kinds, sets) in VARIANTS.items():
        run = run_steps(recipe="hicl", kinds=kinds, sets=[SHORT, *sets], steps=1)
        first[variant] = run.losses[0]
        (seen,) = run.scalars
        names = {choice.name for choice in run.session.composition.of("loss")}
        assert {f"{name}.loss" for name in names} <= set(seen)
        if "local" in names:
            assert seen["local.negatives"] > 3, "segments, more than the three other sentences"
    plain = run_steps(recipe="hicl", sets=[SHORT], steps=1).losses[0]
    assert first.pop("sliced at inference") == plain
    assert plain not in first.values()
    assert len(set(first.values())) == len(first) and all(loss > 0 for loss in first.values())


def test_hicl_of_short_texts_is_simcse_at_both_levels() -> None:
    """Where no text has a second segment both losses are that of simcse."""
    wide = ["model.max_length=30", "pool.segments.length=32"]
    run = run_steps(recipe="hicl", sets=wide, steps=1).scalars[0]
    # Without a recipe: cls, mlp, infonce. max_length counts special tokens there.
    simcse = run_steps(sets=["model.max_length=32"], steps=1)
    assert run["local.loss"] == pytest.approx(simcse.losses[0], rel=1e-6)
    assert run["global.loss"] == run["local.loss"]


def test_no_work_is_done_on_padding() -> None:
    """Both views of five texts: their content, and two special tokens a segment."""
    texts = ["boat", "boat lamp " * 300, "drum " * 33, "kite clock " * 40, "bell " * 64]
    corpus = Corpus.from_columns({"text": texts})
    made = Rig(compose(recipe="hicl", sets=["train.batch_size=5"], corpus=corpus))
    lengths = made.session.tokenizer().content(texts, 512).lengths.tolist()
    assert min(lengths) == 1 and max(lengths) == 512
    result = made.step(1)[0]
    segments = sum(1 + (length - 1) // 32 for length in lengths)
    assert result.tokens == 2 * (sum(lengths) + 2 * segments)


def test_a_text_without_a_token_of_content_trains() -> None:
    """The tokenizer drops a control character: its one segment is [CLS] [SEP]."""
    corpus = Corpus.from_columns({"text": ["\u200b", "boat " * 40, "the lamp", "drum"]})
    made = Rig(compose(recipe="hicl", corpus=corpus))
    assert made.session.tokenizer().content(["\u200b"]).rows == 1
    result = made.step(2)[-1]
    assert bool(result.loss.isfinite()) and not made.bad_gradients


# -- the saved model ----------------------------------------------------------------------------


def trained(folder: Path, *sets: str) -> Path:
    corpus = tiny_corpus()
    file = write_corpus(corpus, folder / "rows.csv")
    given = [f"data.path=[{file}]", "train.max_steps=1", "train.device=cpu", SHORT, *sets]
    composition = compose(recipe="hicl", corpus=corpus, sets=given)
    train(composition, installed_registry(), out=folder / "run", reporter=Reporter())
    return folder / "run"


def test_slicing_is_saved_with_the_model(tmp_path: Path) -> None:
    """A sliced model joins what its segments are by themselves; it says that it slices."""
    run = trained(tmp_path, "inference.slice=true")
    model = load(str(run), installed_registry())
    assert model.sentence_encoder.slicer is not None
    whole = model.encode(["boat " * 6])[0]
    one, other = model.encode(["boat " * 4, "boat " * 2])
    joined = one * 4 / 6 + other * 2 / 6
    assert torch.allclose(torch.from_numpy(whole), torch.from_numpy(joined), atol=1e-5)
    assert "sliced by segments" in (run / "model" / "README.md").read_text(encoding="utf-8")
    assert not (run / "model" / "modules.json").exists()


def test_a_model_encodes_whole_texts_by_default(tmp_path: Path) -> None:
    """Trained on texts longer than the encoder takes, it says how long whole ones may be."""
    run = trained(tmp_path, "model.max_length=1024")
    model = load(str(run), installed_registry())
    assert model.sentence_encoder.slicer is None
    assert (run / "model" / "modules.json").exists()
    config = (run / "model" / "sentence_bert_config.json").read_text(encoding="utf-8")
    assert json.loads(config)["max_seq_length"] == 512
    assert model.encode(["boat " * 900]).shape[0] == 1


def test_what_cannot_be_is_refused_before_anything_is_loaded() -> None:
    for recipe, setting, words in (
        ("hicl", "pool.segments.length=600", "longer than the 512 that the encoder takes"),
        ("hicl-v2", "loss.entailment.level=sentence", "a text is not a part of itself"),
    ):
        with pytest.raises(CseError, match=words):
            compose(recipe=recipe, sets=["model.name=starter", setting])


# -- with the parts of other plugins --------------------------------------------------------------


def test_a_queue_of_sentences_serves_the_global_loss_alone() -> None:
    """Segments in the batch, a queue of whole texts."""
    run = run_steps(
        recipe="hicl",
        kinds={"negatives": ["+queue"], "branch": ["+ema"]},
        sets=[SHORT, "negatives.queue.branch=ema", "negatives.queue.size=16"],
        steps=4,
    )
    assert "negatives.queue (positive by branch ema) -> loss.global" in data_flow(
        run.session.composition
    )
    assert not any(
        "queue" in line and "local" in line for line in data_flow(run.session.composition)
    )
    assert run.scalars[-1]["global.negatives"] > 3, "more than the other texts of the batch"


def test_the_literal_local_positive_over_esimcse_is_a_setting() -> None:
    """Section 3.2: a segment's positive differs by dropout alone, so without dropout by nothing.

    The local loss is then that of hicl, and the global one has its repeated texts as before.
    """
    sets = [SHORT, "model.dropout=0", "aug.word-repetition.rate=0.9"]
    plain = run_steps(recipe="hicl", sets=sets[:2], steps=1).scalars[0]
    default = run_steps(recipe="hicl-esimcse", sets=sets, steps=1).scalars[0]
    run = run_steps(recipe="hicl-esimcse", sets=[*sets, "loss.local.target=identical"], steps=1)
    literal = run.scalars[0]
    assert literal["local.loss"] == pytest.approx(plain["local.loss"], rel=1e-5)
    assert default["local.loss"] != pytest.approx(plain["local.loss"], rel=1e-5)
    assert literal["global.loss"] == pytest.approx(default["global.loss"], rel=1e-5)
    assert literal["global.loss"] != pytest.approx(plain["global.loss"], rel=1e-5)
    found = data_flow(run.session.composition)
    assert any(line.startswith("identical -> loss.local") for line in found)
    assert any(line.startswith("positive -> loss.global") for line in found)
