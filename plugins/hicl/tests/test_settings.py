"""The paper's variants are settings, which compose and train."""

from __future__ import annotations

import json
from importlib.metadata import entry_points
from pathlib import Path

import pytest
import torch
from cse_testkit import Rig, compose, installed_registry, run_steps, tiny_corpus, write_corpus

from cse_cli.models.saved_model import load
from cse_cli.plugins.directory import HintingRegistry
from cse_cli.plugins.manager import load_plugins
from cse_cli.training.plan import data_flow
from cse_core.data import Corpus, load_corpus
from cse_core.errors import CseError
from cse_core.recipes.composition import Composition
from cse_core.recipes.settings import DataOptions
from cse_core.records import Kind
from cse_core.runtime.reporter import Reporter
from cse_core.training.run import train
from tests.shared import shared_path

SHORT = "pool.segments.length=4"
Kinds = dict[Kind, list[str]]
Part = tuple[Kind, str]

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


SNCSE: tuple[Part, ...] = (("aug", "negation"), ("pool", "mask-prompt"), ("loss", "bml"))
RECIPES: dict[str, tuple[Kinds, list[str], tuple[Part, ...]]] = {
    "hicl-v2": ({}, ["params.beta=0.0001"], ()),
    "hicl-esimcse": ({}, [], (("aug", "word-repetition"), ("negatives", "momentum-queue"))),
    "hicl-sncse": ({}, [], SNCSE),
    "hicl-v2-sncse": ({}, ["params.beta=0.0001"], SNCSE),
}
"""HiCL over other methods, and HiCLv2, with what they need of other plugins."""


def needs(*parts: Part) -> None:
    """Skip where a part of another plugin is not installed."""
    for kind, name in parts:
        if not installed_registry().has(kind, name):
            pytest.skip(f"no installed plugin brings {kind} {name}")


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("aggregate", ["weighted", "mean"])
def test_other_recipes_train(recipe: str, aggregate: str) -> None:
    kinds, sets, parts = RECIPES[recipe]
    needs(*parts)
    sets = [SHORT, f"pool.segments.aggregate={aggregate}", *sets]
    run = run_steps(recipe=recipe, kinds=kinds, sets=sets)
    assert all(0 < loss < 10 for loss in run.losses)
    assert all(each["local.negatives"] > 3 for each in run.scalars), "segments"
    assert not run.unchanged, "augmenters change something"


@pytest.mark.parametrize("variant", VARIANTS)
def test_each_variant_trains(variant: str) -> None:
    kinds, sets = VARIANTS[variant]
    run = run_steps(recipe="hicl", kinds=kinds, sets=[SHORT, *sets])
    assert all(loss > 0 for loss in run.losses)
    seen = run.scalars[0]
    names = {choice.name for choice in run.composition.of("loss")}
    assert {f"{name}.loss" for name in names} <= set(seen)
    if "local" in names:
        assert seen["local.negatives"] > 3, "segments, more than the three other sentences"


def test_variants_differ_where_they_should() -> None:
    """With one seed and one batch every variant has a loss of its own; inference changes none."""
    first = {}
    for variant, (kinds, sets) in VARIANTS.items():
        run = run_steps(recipe="hicl", kinds=kinds, sets=[SHORT, *sets], steps=1)
        first[variant] = run.losses[0]
    plain = run_steps(recipe="hicl", sets=[SHORT], steps=1).losses[0]
    assert first.pop("sliced at inference") == plain
    assert plain not in first.values()
    assert len(set(first.values())) == len(first)


def test_hicl_of_short_texts_is_simcse_at_both_levels() -> None:
    """Where no text has a second segment both losses are that of simcse."""
    wide = ["model.max_length=30", "pool.segments.length=32"]
    run = run_steps(recipe="hicl", sets=wide, steps=1).scalars[0]
    # Without a recipe: cls, mlp, infonce. max_length counts special tokens there.
    simcse = run_steps(sets=["model.max_length=32"], steps=1)
    assert run["local.loss"] == pytest.approx(simcse.losses[0], rel=1e-6)
    assert run["global.loss"] == run["local.loss"]


def test_texts_cut_into_texts_are_a_setting(tmp_path: Path) -> None:
    """The paper's "full-" baseline: simcse, or any recipe, on texts of at most so many tokens."""
    corpus = Corpus.from_columns(
        {"text": ["boat " * 9, "the lamp", "drum " * 4], "title": list("abc")}
    )
    file = write_corpus(corpus, tmp_path / "rows.csv")
    composition = compose(
        corpus=corpus,
        sets=[
            f"data.path=[{file}]", "data.split_tokens=4", "train.max_steps=2", "train.device=cpu",
        ],
    )  # fmt: skip
    printed: list[str] = []

    class Listener(Reporter):
        def message(self, text: str) -> None:
            printed.append(text)

    train(composition, installed_registry(), out=tmp_path / "run", reporter=Listener())
    assert any("3 texts cut into" in line and "at most 4 tokens" in line for line in printed)


# -- long texts ---------------------------------------------------------------------------------


def long_corpus() -> Corpus:
    """Return texts of very different lengths: of one token, of 512, of one past a segment."""
    texts = [
        "boat",
        "boat lamp " * 300,
        "drum " * 33,
        "kite clock " * 40,
        "bell " * 64,
        "lamp " * 7,
    ]
    return Corpus.from_columns({"text": texts})


def rig(*sets: str, corpus: Corpus | None = None, recipe: str = "hicl") -> Rig:
    corpus = corpus or long_corpus()
    composition: Composition = compose(recipe=recipe, sets=sets, corpus=corpus)
    return Rig(composition, corpus)


def test_long_texts_in_chunks_are_the_same() -> None:
    """Six texts, 26 segments: encoded two texts at a time they give the loss and the weights."""
    sets = ("train.batch_size=6", "model.dropout=0", "train.lr=0.0001")
    whole, chunked = rig(*sets), rig(*sets, "train.chunk_size=2")
    one, other = whole.step(2), chunked.step(2)
    for left, right in zip(one, other, strict=True):
        assert torch.allclose(left.loss, right.loss, rtol=1e-5)
        assert float(left.parts["local.negatives"]) == float(right.parts["local.negatives"])
    for name, weight in whole.weights().items():
        assert torch.allclose(weight, chunked.weights()[name], atol=2e-5), name


def test_no_work_is_done_on_padding() -> None:
    """Both views of six texts: their content, and two special tokens a segment."""
    made = rig("train.batch_size=6")
    texts = long_corpus().column("text")[:]
    lengths = made.assembly.online.tokenizer.content(texts, 512).lengths.tolist()
    assert min(lengths) == 1 and max(lengths) == 512
    result = made.step(1)[0]
    segments = sum(1 + (length - 1) // 32 for length in lengths)
    assert result.tokens == 2 * (sum(lengths) + 2 * segments)


def test_one_text_alone_trains_without_a_local_loss() -> None:
    made = rig("train.batch_size=6")
    result = made.step(1, rows=1)[0]
    assert float(result.loss) == 0.0 and not made.bad_gradients
    made.step(1, rows=2)
    assert not made.bad_gradients


def test_a_text_without_a_token_of_content_trains() -> None:
    """The tokenizer drops a control character: its one segment is [CLS] [SEP]."""
    corpus = Corpus.from_columns({"text": ["\u200b", "boat " * 40, "the lamp", "drum"]})
    made = rig("train.batch_size=4", corpus=corpus)
    rows = made.assembly.online.tokenizer.content(["\u200b"])
    result = made.step(2)[-1]
    assert bool(result.loss.isfinite()) and not made.bad_gradients
    assert rows.rows == 1


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_long_texts_in_either_precision(precision: str) -> None:
    corpus = long_corpus()
    sets = ["train.batch_size=6"]
    run = run_steps(recipe="hicl", sets=sets, corpus=corpus, precision=precision, steps=2)
    assert all(0 < loss < 10 for loss in run.losses)


def test_real_articles_of_512_tokens() -> None:
    path = shared_path("data/docs/wiki_en.jsonl.gz")
    options = DataOptions(path=(str(path),), unit="document", limit=8)
    corpus = load_corpus(options, datasets={})
    made = rig("train.batch_size=8", "train.chunk_size=4", corpus=corpus)
    content = made.assembly.online.tokenizer.content(corpus.column("text")[:], 512)
    segments = ((content.lengths + 31) // 32).sum()
    result = made.step(1)[0]
    assert 0 < float(result.loss) < 10 and not made.bad_gradients
    others = segments - segments / 8  # about: texts of few segments see more of the others
    assert float(result.parts["local.negatives"]) == pytest.approx(float(others), rel=0.1)


# -- the saved model ----------------------------------------------------------------------------


def trained(folder: Path, *sets: str) -> Path:
    corpus = tiny_corpus()
    file = write_corpus(corpus, folder / "rows.csv")
    composition = compose(
        recipe="hicl",
        corpus=corpus,
        sets=[f"data.path=[{file}]", "train.max_steps=2", "train.device=cpu", SHORT, *sets],
    )
    train(composition, installed_registry(), out=folder / "run", reporter=Reporter())
    return folder / "run"


@pytest.mark.parametrize("aggregate", ["weighted", "mean"])
def test_slicing_is_saved_with_the_model(tmp_path: Path, aggregate: str) -> None:
    """A sliced model joins what its segments are by themselves; it says that it slices."""
    run = trained(tmp_path, "inference.slice=true", f"pool.segments.aggregate={aggregate}")
    model = load(str(run), installed_registry())
    assert model.sentence_encoder.slicer is not None
    whole = model.encode(["boat " * 6])[0]
    one, other = model.encode(["boat " * 4, "boat " * 2])
    shares = torch.tensor([4.0, 2.0] if aggregate == "weighted" else [1.0, 1.0])
    shares /= shares.sum()
    joined = one * float(shares[0]) + other * float(shares[1])
    assert torch.allclose(torch.from_numpy(whole), torch.from_numpy(joined), atol=1e-5)
    assert "sliced by segments" in (run / "model" / "README.md").read_text(encoding="utf-8")
    assert not (run / "model" / "modules.json").exists()


def test_a_model_encodes_whole_texts_by_default(tmp_path: Path) -> None:
    run = trained(tmp_path)
    model = load(str(run), installed_registry())
    assert model.sentence_encoder.slicer is None and model.sentence_encoder.max_length == 512
    assert (run / "model" / "modules.json").exists()
    assert model.encode(["boat " * 900]).shape[0] == 1


def test_texts_longer_than_the_encoder_takes_can_be_trained_on(tmp_path: Path) -> None:
    """Segments fit; a model that encodes whole texts says how long these may be."""
    run = trained(tmp_path, "model.max_length=1024")
    config = (run / "model" / "sentence_bert_config.json").read_text(encoding="utf-8")
    assert json.loads(config)["max_seq_length"] == 512
    assert load(str(run), installed_registry()).encode(["boat " * 900]).shape[0] == 1


@pytest.mark.parametrize(
    ("recipe", "setting", "printed"),
    [
        ("hicl", "pool.segments.length=600", "longer than the 512 that the encoder takes"),
        ("hicl-v2", "loss.entailment.level=sentence", "a text is not a part of itself"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_loaded(
    recipe: str, setting: str, printed: str
) -> None:
    with pytest.raises(CseError, match=printed):
        compose(recipe=recipe, sets=["model.name=starter", setting])


# -- with the parts of other plugins --------------------------------------------------------------


def test_a_queue_of_sentences_serves_the_global_loss_alone() -> None:
    """Segments in the batch, a queue of whole texts."""
    needs(("negatives", "queue"))
    run = run_steps(
        recipe="hicl",
        kinds={"negatives": ["+queue"], "branch": ["+ema"]},
        sets=[SHORT, "negatives.queue.branch=ema", "negatives.queue.size=16"],
        steps=4,
    )
    assert "negatives.queue (positive by branch ema) -> loss.global" in data_flow(run.composition)
    assert not any("queue" in line and "local" in line for line in data_flow(run.composition))
    assert run.scalars[-1]["global.negatives"] > 3, "more than the other texts of the batch"


@pytest.mark.parametrize(
    ("recipe", "missing"),
    [
        ("hicl-esimcse", "cse-esimcse"),
        ("hicl-sncse", "cse-sncse"),
        ("hicl-v2-sncse", "cse-sncse"),
    ],
)
def test_a_missing_plugin_is_named(recipe: str, missing: str) -> None:
    """In one line, with the command that installs it."""
    there = [each for each in entry_points(group="cse") if each.dist and each.dist.name != missing]
    registry = HintingRegistry.from_plugins(load_plugins(entry_points=there).infos)
    with pytest.raises(CseError, match=missing) as caught:
        compose(recipe=recipe, registry=registry)
    assert f"pip install {missing}" in str(caught.value)
