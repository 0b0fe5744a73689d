"""The paper's variants are settings; long texts; the saved model; parts of other plugins."""

from pathlib import Path

import pytest
import torch
from cse_testkit import Rig, compose, installed_registry, run_steps

from cse_cli.models.saved_model import load
from cse_cli.training.plan import data_flow
from cse_core.records import Kind
from cse_defaults.texts import Corpus
from tests.fixtures.methods import finished, planned, refusal

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


def test_a_text_without_a_token_of_content_trains() -> None:
    """The tokenizer drops a control character: its one segment is [CLS] [SEP]."""
    corpus = Corpus.from_columns({"text": ["\u200b", "boat " * 40, "the lamp", "drum"]})
    made = Rig(compose(recipe="hicl", corpus=corpus))
    assert made.session.tokenizer().content(["\u200b"]).rows == 1
    result = made.step(2)[-1]
    assert bool(result.loss.isfinite()) and not made.bad_gradients


# -- the saved model ----------------------------------------------------------------------------


def test_slicing_is_saved_with_the_model(tmp_path: Path) -> None:
    """A sliced model joins what its segments are by themselves; it says that it slices."""
    run = finished(tmp_path, "hicl", "train.max_steps=1", SHORT, "inference.slice=true")
    model = load(str(run), installed_registry())
    assert model.sentence_encoder.slicer is not None
    whole = model.encode(["boat " * 6])[0]
    one, other = model.encode(["boat " * 4, "boat " * 2])
    joined = one * 4 / 6 + other * 2 / 6
    assert torch.allclose(torch.from_numpy(whole), torch.from_numpy(joined), atol=1e-5)
    assert "sliced by segments" in (run / "model" / "README.md").read_text(encoding="utf-8")
    modules = (run / "model" / "modules.json").read_text(encoding="utf-8")
    assert "cse.in_sentence_transformers" in modules, "it does not load there as something else"


def test_what_cannot_be_is_refused_before_anything_is_loaded() -> None:
    for recipe, setting, words in (
        ("hicl", "pool.segments.length=600", "longer than the 512 that the encoder takes"),
        ("hicl-v2", "loss.entailment.level=sentence", "a text is not a part of itself"),
        ("hicl", "negatives.averaging.level=sentence", "a text is not a part of itself"),
    ):
        more = {"negatives": ["+averaging"]} if "averaging" in setting else {}
        line = refusal(planned, recipe, setting, encoder="starter", kinds=more)
        assert words in line and setting.partition("=")[0] in line


# -- with the parts of other plugins --------------------------------------------------------------


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
